// The judge's model on llama.cpp's prebuilt libraries with AVX-512, behind /v1/chat/completions.
//
//     npm install --ignore-scripts node-llama-cpp@3.22.1    (in another folder, this file beside it)
//     node llama.mjs WEIGHTS PORT THREADS
//
// It prints its address, for $HOLDFAST_JUDGE_MODEL. About 1.5 times as fast as the wheel.
import http from "node:http";
import {getLlama} from "node-llama-cpp";
import {Template} from "@huggingface/jinja";

const [weights, port, threads] = process.argv.slice(2);
const llama = await getLlama({build: "never", gpu: false, maxThreads: Number(threads), logLevel: "error"});
const model = await llama.loadModel({modelPath: weights, useMmap: true});
// One long sequence for single prompts; prompts with a shared start find it in one of several.
const context = await model.createContext({contextSize: 9216, threads: Number(threads), batchSize: 512, sequences: 6});
const slots = Array.from({length: 6}, () => ({sequence: context.getSequence(), used: 0}));
let clock = 0;

function chooseSlot(tokens) {
  let best = null, most = -1;
  for (const slot of slots) {
    const known = slot.sequence.contextTokens;
    let same = 0;
    while (same < known.length && same < tokens.length - 1 && known[same] === tokens[same]) same++;
    slot.same = same;
    if (same > most) { best = slot; most = same; }
  }
  if (most < 0.5 * Math.min(tokens.length, best.sequence.nextTokenIndex || Infinity))
    best = slots.reduce((a, b) => (a.used <= b.used ? a : b));
  best.used = ++clock;
  return best.sequence;
}
const template = new Template(model.fileInfo.metadata.tokenizer.chat_template);
let queue = Promise.resolve();

function prepared(messages) {
  return messages.map((m) => {
    const copy = {...m};
    if (Array.isArray(copy.content)) copy.content = copy.content.map((p) => p.text ?? "").join("\n");
    if (copy.content === null || copy.content === undefined) copy.content = "";
    if (copy.tool_calls) copy.tool_calls = copy.tool_calls.map((c) => {
      let args = c.function.arguments;
      try { args = JSON.parse(args); } catch { /* as it stands */ }
      return {...c, function: {...c.function, arguments: args}};
    });
    return copy;
  });
}

async function complete(body) {
  const prompt = template.render({
    messages: prepared(body.messages), tools: body.tools, add_generation_prompt: true,
    bos_token: "", eos_token: "<|im_end|>",
  });
  const tokens = model.tokenize(prompt, true);
  const most = body.max_tokens ?? 160;
  const sequence = chooseSlot(tokens);
  await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
  const known = sequence.nextTokenIndex;
  const out = [];
  let finish = "length";
  for await (const token of sequence.evaluate(tokens.slice(known), {temperature: 0})) {
    if (model.isEogToken(token)) { finish = "stop"; break; }
    out.push(token);
    if (out.length >= most) break;
  }
  const text = model.detokenize(out, true);
  return {choices: [{index: 0, message: {role: "assistant", content: text}, finish_reason: finish}],
    usage: {prompt_tokens: tokens.length, completion_tokens: out.length, cached_tokens: known}};
}

http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    queue = queue.then(async () => {
      let status = 200, answer;
      try {
        const cpu = process.cpuUsage();
        answer = await complete(JSON.parse(Buffer.concat(parts)));
        const used = process.cpuUsage(cpu);
        answer.cpu_seconds = (used.user + used.system) / 1e6;
      } catch (error) { status = 500; answer = {error: String(error?.stack ?? error)}; }
      response.writeHead(status, {"Content-Type": "application/json"});
      response.end(JSON.stringify(answer));
    });
  });
}).listen(Number(port), "127.0.0.1", function () { console.log(`http://127.0.0.1:${this.address().port}`); });
