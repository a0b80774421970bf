"""Which test holds which requirement of the guard: seed 002, its conflicts, known mistakes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from holdfast import guard

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "how-to" / "guard.md"
NOT_HERE = "not the guard's: "

MODEL = "test_the_guard_answers_as_the_obvious_model_does"
LIMIT = "test_limit_is_the_window_less_buffer_and_answer"
LEVELS = "test_the_first_level_that_states_a_number_wins"
SUM = "test_a_projection_is_the_sum_of_the_four_counters"
ONCE = "test_final_turn_is_forced_and_told_once"
FINAL_TOOLS = "test_a_forced_final_turn_offers_the_final_report_and_the_allowed_extra_tools"
LOCK = "test_a_locked_report_removes_the_extra_tools_even_in_an_ordinary_turn"
READY = "test_the_session_is_ready_with_report_and_meta_and_locked_between_them"
BEST_EFFORT = "test_best_effort_goes_on_inside_the_forced_final_turn_with_a_warning"
SHRINK = "test_final_turn_shrinks_the_schema_and_evaluates_again"
SKIP = "test_a_blocked_target_is_skipped_until_all_are_blocked"
PAIR = "test_two_outputs_of_600_do_not_both_fit_1000"
THREADS = "test_threads_that_reserve_at_once_never_exceed_the_limit_together"
SCHEMA = "test_schema_is_projected_until_reported_and_then_only_its_difference"
ESTIMATE = "test_role_content_calls_and_structure_all_count"
PAGE = "test_the_page_has_the_checks_of_the_seed"

HELD_BY = {
    "002-01": "test_the_defaults_of_a_target_are_256_and_its_own_tokenizer",
    "002-02": "test_a_blocked_entry_has_all_the_numbers",
    "002-03": SUM,
    "002-04": SUM,
    "002-05": SUM,
    "002-06": SUM,
    "002-07": SCHEMA,
    "002-08": "test_a_session_starts_from_the_tokens_of_its_conversation",
    "002-09": "test_a_target_named_twice_is_refused",
    "002-10": LEVELS,
    "002-11": LEVELS,
    "002-12": LIMIT,
    "002-13": LIMIT,
    "002-14": SUM,
    "002-15": "test_a_request_that_fills_the_limit_passes_and_one_more_token_does_not",
    "002-16": SKIP,
    "002-17": SKIP,
    "002-18": SHRINK,
    "002-19": "test_a_skipped_target_is_told_and_ends_nothing",
    "002-20": SHRINK,
    "002-21": ONCE,
    "002-22": FINAL_TOOLS,
    "002-23": BEST_EFFORT,
    "002-24": LOCK,
    "002-25": READY,
    "002-26": LOCK,
    "002-27": "test_the_model_is_asked_for_meta_alone_while_the_report_is_locked",
    "002-28": THREADS,
    "002-29": "test_a_reserved_output_is_not_less_than_its_message_really_costs",
    "002-30": PAIR,
    "002-31": "test_the_first_refusal_alone_forces_the_final_turn",
    "002-32": "test_a_taken_output_is_added_to_new",
    "002-33": "test_tools_stop_after_a_refusal_but_internal_ones_never",
    "002-34": THREADS,
    "002-35": "test_output_over_the_byte_limit_is_budgeted_as_its_handle",
    "002-36": ESTIMATE,
    "002-37": ESTIMATE,
    "002-38": "test_without_a_tokenizer_a_quarter_of_the_bytes_is_the_estimate",
    "002-39": "test_after_the_shrink_only_the_target_that_fits_takes_the_final_turn",
    "002-40": PAIR,
    "002-41": "test_each_number_is_resolved_by_itself_and_none_states_nothing",
    "002-42": "test_an_event_has_the_fields_of_the_seed",
    "002-43": "test_a_metric_has_the_fields_of_the_seed",
    "002-44": "test_the_context_log_informs_of_usage_and_warns_when_over",
    "002-45": "test_the_log_of_a_request_has_the_fields_of_the_seed_and_they_add_up",
    "002-46": "test_debugging_shows_every_topic_and_otherwise_none",
    "002-47": "test_debugging_shows_every_topic_and_otherwise_none",
    "002-48": BEST_EFFORT,
    "002-49": "test_buffer_and_answer_are_always_left_free",
    "002-50": "test_buffer_and_answer_are_always_left_free",
    "002-51": "test_the_conversation_may_shrink_between_turns_only",
    "002-52": "test_a_forced_final_turn_holds_for_the_requests_that_follow",
    "002-53": MODEL,
    "002-54": "test_a_conversation_is_estimated_as_it_is_counted_without_its_tools",
    "002-55": PAGE,
    "002-56": PAGE,
    "002-57": PAGE,
    "002-58": PAGE,
    "002-59": PAGE,
    "002-60": NOT_HERE + "a split into modules; the tree in the README shows ours",
    "002-61": "test_every_function_the_seed_names_has_its_counterpart",
    "C2": "test_buffer_and_answer_are_always_left_free",
    "C14": "test_a_text_is_never_estimated_below_a_quarter_of_its_bytes",
    "C16": "test_force_final_raises_rather_than_exceed_when_even_the_final_turn_does_not_fit",
    "C17": LEVELS,
    "C18": SCHEMA,
    "C19": "test_the_policy_says_whether_one_blocked_target_refuses_an_output",
    "C42": "test_a_limit_of_zero_blocks_even_an_empty_request",
    "C43": "test_an_output_that_does_not_fit_is_stored_and_its_handle_reserved",
    "X07": "test_enforcement_keeps_what_tools_have_reserved",
    "X08": "test_the_handle_is_returned_even_if_its_reservation_fails",
}

COUNTERPARTS = {
    "selectToolsForTurn": "ContextGuard.tools_for_turn",
    "estimateToolSchemaTokens": "estimate_tool_schema_tokens",
    "evaluateContextGuard": "ContextGuard.evaluate",
    "computeForcedFinalSchemaTokens": "ContextGuard.set_schema",
    "estimateTokensForCounters": "estimate_messages_tokens",
    "handleContextGuardForcedFinalTurn": "ContextGuard.enforce_final_turn",
    "recordContextGuardMetrics": "ContextGuardMetric",
    "reportContextGuardEvent": "ContextGuardEvent",
}


def names_of_tests() -> set[str]:
    found = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.add(node.name)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.add(node.targets[0].id)
    return found


def test_every_requirement_of_the_seed_is_in_the_table() -> None:
    assert [f"002-{number:02}" for number in range(1, 62)] == [
        id_ for id_ in HELD_BY if id_.startswith("002")
    ]


@pytest.mark.parametrize("requirement", HELD_BY)
def test_the_test_that_holds_a_requirement_exists(requirement: str) -> None:
    held_by = HELD_BY[requirement]
    assert held_by.startswith(NOT_HERE) or held_by in names_of_tests()


@pytest.mark.parametrize("name", COUNTERPARTS.values())
def test_every_function_the_seed_names_has_its_counterpart(name: str) -> None:
    found: object = guard
    for part in name.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize(
    "symptom",
    [
        "Unexpected final turn",
        "Counts do not match",
        "A tool's output is refused",
        "A target is skipped",
        "The context does not grow",
    ],
)
def test_the_page_has_the_checks_of_the_seed(symptom: str) -> None:
    assert symptom in DOCS.read_text("utf-8")
