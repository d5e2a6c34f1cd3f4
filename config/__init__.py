__handbell__ = "config"
