"""The drop-in connector inside a whole engine: vLLM on the CPU with tiny random models.

Tokens are compared, exactly, with an engine that has no connector. Since equal tokens prove nothing
when they would be equal anyway, every run has a control in which the loaded bytes are zeroed.
"""
