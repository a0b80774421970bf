// Keeps the first page new: puts the parts that an event brings where they belong.
// The server has made and escaped them, as it made the page. Without this file all is still there.
"use strict";
const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live + location.search);
  source.onmessage = (event) => {
    const parts = JSON.parse(event.data);
    for (const id of Object.keys(parts)) {
      const place = document.getElementById(id);
      // Who reads or types there is not interrupted.
      if (!place || place.contains(document.activeElement) || place.querySelector("details[open]")) continue;
      const made = new DOMParser().parseFromString(parts[id], "text/html");
      place.replaceChildren(...made.body.childNodes);
    }
    document.documentElement.dataset.updates = String(Number(document.documentElement.dataset.updates || 0) + 1);
  };
}
