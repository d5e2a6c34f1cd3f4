__handbell__ = "sinks"
