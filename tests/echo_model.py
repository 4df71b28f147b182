"""A tiny model behind `/completions`, for servers of `tests.loopback_server`."""

import threading

import torch

from . import tiny_models


class EchoModel:
    """Answers `/completions` with the log-probabilities of a tiny model, one request at a time."""

    def __init__(self, adds_bos=False, refuses_zero=False):
        self.model = tiny_models.make_model("llama")
        self.tokenizer = tiny_models.make_tokenizer(adds_bos)
        self.refuses_zero = refuses_zero
        self.lock = threading.Lock()
        self.asked_for = []

    def __call__(self, path, body):
        assert path == "/v1/completions"
        assert body["echo"] is True
        assert body["logprobs"] == 1
        self.asked_for.append(body["max_tokens"])
        if self.refuses_zero and body["max_tokens"] == 0:
            return 400, {"message": "max_tokens must be at least 1, got 0"}, {}
        with self.lock, torch.inference_mode():
            ids = self.tokenizer.encode(body["prompt"])
            n_prompt = len(ids)
            logits = self.model(torch.tensor([ids])).logits[0]
            if body["max_tokens"]:
                ids.append(int(logits[-1].argmax()))
        values = [None, *logits[:-1].log_softmax(-1)[range(n_prompt - 1), ids[1:n_prompt]].tolist()]
        tokens = [self.tokenizer.decode([token]) for token in ids]
        logprobs = {
            "tokens": tokens,
            "token_logprobs": values + [-0.5] * (len(ids) - n_prompt),
            "text_offset": [sum(map(len, tokens[:i])) for i in range(len(tokens))],
        }
        usage = {"prompt_tokens": n_prompt, "completion_tokens": len(ids) - n_prompt}
        return {"choices": [{"text": "".join(tokens), "logprobs": logprobs}], "usage": usage}
