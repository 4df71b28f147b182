"""Models behind an OpenAI-compatible HTTP endpoint: vLLM, TGI, llama.cpp, hosted services."""
