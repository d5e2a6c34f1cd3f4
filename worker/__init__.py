__handbell__ = "worker"
