"""Providers to test against: real HTTP and SMTP servers on loopback, with faults that can be ordered in advance."""
