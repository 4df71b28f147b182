"""Services on loopback, one per API: letters, refusals, cut answers, rate limits, and a count of the tokens."""

import json
import time
from collections import Counter

from .batch_service import result
from .loopback_server import Handler, Server, digest, letter_of

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


class BatchHandler(Handler):
    """Passes files and batches to the service of a `BatchServer`."""

    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.path, headers))
        self.server.asked[self.command, self.path] += 1
        status, answer = self.server.handle(self.command, self.path, headers, content)
        if status is None:  # the request is taken, and the reply lost
            self.close_connection = True
            return
        self._send(status, answer, {})

    do_GET = do_POST = answer


class BatchServer(Server):
    """A service of batches, of one API: files, batches with states, and results. `fault` may spoil a request."""

    handler = BatchHandler

    def __init__(self, api, fault=None):
        super().__init__()
        self.api, self.fault = api, fault or (lambda method, path: None)
        self.asked, self.files, self.batches = Counter(), {}, {}
        self.ended = set()  # ids of batches that have ended
        self.made = lambda requests: list(batch_results(api, requests))  # what becomes of requests
        self.prefix = "/v1/messages/batches" if api == "anthropic" else "/v1/batches"

    def handle(self, method, path, headers, content):
        fault = self.fault(method, path)
        if isinstance(fault, int):
            return fault, error_of(self.api, "error", "spoiled")
        answer = self.serve_one(method, path, headers, content)
        return (None, None) if fault == "lost" else (200, answer)

    def serve_one(self, method, path, headers, content):
        if method == "POST" and path == "/v1/files":
            boundary = headers["content-type"].partition("boundary=")[2].encode()
            parts = [part.partition(b"\r\n\r\n")[::2] for part in content.split(b"--" + boundary)]
            fields = {head.partition(b'name="')[2].partition(b'"')[0]: body[:-2] for head, body in parts if body}
            assert fields[b"purpose"] == b"batch"
            return self._add_file(fields[b"file"])
        if method == "POST" and path == self.prefix:
            assert headers["content-type"] == "application/json"
            wish = json.loads(content)
            if self.api == "anthropic":
                requests, wish = wish["requests"], {}
            else:
                requests = [json.loads(line) for line in self.files[wish["input_file_id"]].splitlines()]
                assert {request["url"] for request in requests} == {wish["endpoint"]} == {PATHS[self.api]}
                assert wish["completion_window"] == "24h"
            name = f"batch_{len(self.batches):03}"
            self.batches[name] = {"metadata": wish.get("metadata"), "requests": requests}
            return self._state(name)
        if path == self.prefix:
            return {"data": [self._state(name) for name in reversed(self.batches)]}
        if path.startswith("/v1/files/"):
            return self.files[path.split("/")[3]].decode()
        name = path.removeprefix(self.prefix + "/").partition("/")[0]
        if path.endswith("/results"):
            assert name in self.ended
            return lines(self.made(self.batches[name]["requests"]))
        return self._state(name)

    def _add_file(self, content):
        self.files[f"file-{len(self.files)}"] = content
        return {"id": f"file-{len(self.files) - 1}", "object": "file", "purpose": "batch"}

    def _state(self, name):
        batch, is_ended = self.batches[name], name in self.ended
        if self.api == "anthropic":
            state = "ended" if is_ended else "in_progress"
            return {"id": name, "type": "message_batch", "processing_status": state}
        state = {"id": name, "object": "batch", "metadata": batch["metadata"], "errors": None}
        if not is_ended:
            return state | {"status": "in_progress", "output_file_id": None, "error_file_id": None}
        if "output" not in batch:  # answers and failures are in files of their own
            made = self.made(batch["requests"])
            sorts = [[one for one in made if bool(one["response"]) == good] for good in (True, False)]
            batch["output"], batch["failed"] = (
                self._add_file(lines(sort).encode())["id"] if sort else None for sort in sorts
            )
        return state | {"status": "completed", "output_file_id": batch["output"], "error_file_id": batch["failed"]}


def lines(made):
    return "".join(json.dumps(one) + "\n" for one in made)
