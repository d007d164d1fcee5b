"""OpenTelemetry metrics, events and traces by the documented names."""
