"""OpenTelemetry spans of runs, made by an observer of their events. Imported only by who asks for it (extra `otel`).

Names follow the semantic conventions for generative AI, version 1.41 (docs/gen-ai: gen-ai-spans.md,
gen-ai-agent-spans.md), which have since moved to the repository open-telemetry/semantic-conventions-genai. They are "in
development": the names stand in attributes.py, not in a library that may rename them.
"""
