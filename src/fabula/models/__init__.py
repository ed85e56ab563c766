"""Language models: an embedded one, any GGUF file, any URL, every hosted provider."""
