"""The online rewriter: applies a rule file to an ELF binary, in place, as a post-link step."""
