__handbell__ = "reconciler"
