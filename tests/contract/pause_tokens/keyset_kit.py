"""Keys for the tests of the signer."""

from worker.answers.errors import KeysetUnavailableError
from worker.answers.keyset import Keyset, SigningKey

SECRET = b"1" * 32
OTHER_SECRET = b"2" * 32


class Keys:
    """A keyset that is set, and can be out of reach."""

    def __init__(self, keyset: Keyset | None = None) -> None:
        self.keyset = keyset or Keyset("k1", {"k1": SigningKey(SECRET)})
        self.next: Keyset | None = None
        self.is_down = False
        self.refreshes = 0

    def current(self) -> Keyset:
        if self.is_down:
            raise KeysetUnavailableError("the keys cannot be read now")
        return self.keyset

    def refreshed(self) -> Keyset:
        self.refreshes += 1
        self.keyset = self.next or self.keyset
        return self.current()
