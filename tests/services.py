"""Services on loopback, one per API: letters, refusals, cut answers, rate limits, and a count of the tokens."""

import time
from collections import Counter

from .batch_service import result
from .loopback_server import digest, letter_of

PATHS = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}
LIMITS = {"chat": "max_tokens", "anthropic": "max_tokens", "responses": "max_output_tokens"}


def text_of(body):
    """The prompt of a request of any API."""
    (turn,) = body.get("messages") or body["input"]
    assert turn["role"] == "user"
    return turn["content"]


def kind_of(text):
    """What becomes of a prompt: most are answered."""
    return {0: "refused", 1: "truncated"}.get(digest(text) % 12, "answered")


def usage_for(text):
    """The tokens of an answer to a prompt: in, cached, out, reasoning."""
    return {
        "prompt_tokens": 40 + digest(text) % 7,
        "cached_tokens": 16,
        "generated_tokens": 9 + digest(text) % 5,
        "reasoning_tokens": 0 if kind_of(text) == "refused" else 4,
    }


def chat_answer(text):
    n, kind = usage_for(text), kind_of(text)
    content = {"refused": "I'm sorry, but I can't help.", "truncated": "Let us"}.get(kind, f"ANSWER: {letter_of(text)}")
    return {
        "model": "m-1",
        "choices": [{"message": {"content": content}, "finish_reason": "length" if kind == "truncated" else "stop"}],
        "usage": {
            "prompt_tokens": n["prompt_tokens"],
            "prompt_tokens_details": {"cached_tokens": n["cached_tokens"]},
            "completion_tokens": n["generated_tokens"],
            "completion_tokens_details": {"reasoning_tokens": n["reasoning_tokens"]},
        },
    }


def anthropic_answer(text):
    n, kind = usage_for(text), kind_of(text)
    reason = {"refused": "refusal", "truncated": "max_tokens"}.get(kind, "end_turn")
    said = {"refused": "ANSWER: A, but", "truncated": "Let us"}.get(kind, f"ANSWER: {letter_of(text)}")
    thinking = {"type": "thinking", "thinking": "ANSWER: B?", "signature": "s"}
    return {
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [thinking, {"type": "text", "text": said}],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": n["prompt_tokens"] - 20,
            "cache_read_input_tokens": n["cached_tokens"],
            "cache_creation_input_tokens": 4,
            "output_tokens": n["generated_tokens"],
        },
    }


def responses_answer(text):
    n, kind = usage_for(text), kind_of(text)
    part = {"type": "output_text", "text": f"ANSWER: {letter_of(text)}", "annotations": []}
    if kind == "refused":
        part = {"type": "refusal", "refusal": "No answer to that."}
    items = [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "ANSWER: B?"}]}]
    items += [] if kind == "truncated" else [{"type": "message", "role": "assistant", "content": [part]}]
    is_cut = kind == "truncated"
    return {
        "object": "response",
        "model": "m-1",
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": items,
        "usage": {
            "input_tokens": n["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": n["cached_tokens"]},
            "output_tokens": n["generated_tokens"],
            "output_tokens_details": {"reasoning_tokens": n["reasoning_tokens"]},
        },
    }


ANSWERS = {"chat": chat_answer, "anthropic": anthropic_answer, "responses": responses_answer}


def error_of(api, kind, message):
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error} if api == "anthropic" else {"error": error}


def total_usage(api, texts):
    """The tokens of the answers to some prompts. Anthropic counts no reasoning."""
    names = [name for name in usage_for("") if not (api == "anthropic" and name == "reasoning_tokens")]
    return {name: sum(usage_for(text)[name] for text in texts) for name in names}


class Service:
    """Answers the requests of one API, as `reply` of a `loopback_server.Server`; checks their form.

    One prompt of 9 is told to come again at first. After `until` answers it has lost its key.
    """

    def __init__(self, api, until=10**9):
        self.api, self.until = api, until
        self.answered, self.limited = Counter(), Counter()

    def __call__(self, path, body):
        assert path == PATHS[self.api]
        assert body["model"] == "m"
        assert body[LIMITS[self.api]] > 0
        assert ("temperature" in body) == (self.api != "responses")
        assert body.get("store", False) is False
        text = text_of(body)
        if self.answered.total() >= self.until:
            return 401, error_of(self.api, "authentication_error", "no such key"), {}
        if digest(text) % 9 == 2 and not self.limited[text]:
            self.limited[text] += 1
            return 429, error_of(self.api, "rate_limit_error", "slow down"), {"retry-after": "0.02"}
        self.answered[text] += 1
        return ANSWERS[self.api](text)


class Window:
    """A limit of requests in a window of time, with the headers that name it; wraps a reply."""

    def __init__(self, api, requests, seconds):
        self.api, self.requests, self.seconds = api, requests, seconds
        self.begin, self.count, self.rejected = 0.0, 0, 0

    def headers(self, now):
        left, until = max(0, self.requests - self.count), self.begin + self.seconds
        if self.api == "anthropic":
            reset = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(until)) + f"{until % 1:.3f}"[1:] + "Z"
            return {"anthropic-ratelimit-requests-remaining": left, "anthropic-ratelimit-requests-reset": reset}
        reset = f"{1000 * (until - now) + 1:.0f}ms"
        return {"x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": reset}

    def __call__(self, path, body):
        now = time.time()
        if now >= self.begin + self.seconds:
            self.begin, self.count = now, 0
        self.count += 1
        if self.count > self.requests:
            self.rejected += 1
            return 429, error_of(self.api, "rate_limit_error", "too many"), self.headers(now)
        return 200, ANSWERS[self.api](text_of(body)), self.headers(now)


def batch_results(api, requests):
    """The lines of a result file for the requests of a batch."""
    for request in requests:
        body = request["params"] if api == "anthropic" else request["body"]
        answer = ANSWERS[api](text_of(body))
        if api == "anthropic":
            yield {"custom_id": request["custom_id"], "result": {"type": "succeeded", "message": answer}}
        else:
            yield result(request["custom_id"], 200, answer)
