"""What every source must do, as checks for its tests: built-in and plug-in alike."""
