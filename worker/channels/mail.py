"""How a message becomes a mail: headers that thread, cannot be injected and ask for no automatic answer, two bodies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

from reconciler.states import AttentionState
from worker.channels import templates, text
from worker.channels.protocol import Message, SendContext, SentBefore
from worker.channels.wording import Wording

# RFC 5322 2.1.1 allows lines of 998; folding at 78 would encode a long Message-ID, which must stay as it is.
LINE_CHARS = 900

# What mail programs still show of a subject; our own choice.
MAX_SUBJECT_UNITS = 150

# The opening and the latest ones: enough for every mail program, and the header stays short.
MAX_REFERENCES = 20

_POLICY = SMTP.clone(max_line_length=LINE_CHARS)


@dataclass(frozen=True, slots=True)
class MailWriter:
    """Writes the mails of one sender; `plain` words the text part and the subject, `markup` the HTML part."""

    sender: Address
    plain: Wording
    markup: Wording

    def message_id(self, key: str) -> str:
        """Return the Message-ID of the delivery with that key: the same for every try."""
        return f"<{key}@{self.sender.domain}>"

    def write(self, message: Message, context: SendContext) -> bytes:
        """Return the mail to the recipient of `context`, ready for the wire."""
        mail = EmailMessage(policy=_POLICY)
        mail["From"] = self.sender
        mail["To"] = Address(addr_spec=context.recipient)
        mail["Subject"] = self._subject(message, context.sent_before)
        mail["Date"] = context.now
        mail["Message-ID"] = self.message_id(message.key)
        if context.sent_before:
            earlier = [self._earlier_id(sent) for sent in context.sent_before]
            mail["In-Reply-To"] = earlier[0]
            mail["References"] = " ".join([earlier[0], *earlier[1:][-MAX_REFERENCES:]])
        mail["Auto-Submitted"] = "auto-generated"  # RFC 3834 5
        mail["X-Auto-Response-Suppress"] = "All"  # what Exchange heeds instead
        mail.set_content(self._text(message))
        mail.add_alternative(self._html(message), subtype="html")
        return mail.as_bytes()

    def _earlier_id(self, sent: SentBefore) -> str:
        reference = sent.provider_ref or ""
        is_ours = reference.startswith("<") and reference.endswith(">") and reference == text.escape_header(reference)
        return reference if is_ours else self.message_id(sent.key)

    def _subject(self, message: Message, sent_before: Sequence[SentBefore]) -> str:
        """Say what the thread is about, the same in all of its mails: programs thread by the subject too."""
        first = sent_before[0].purpose if sent_before else message.purpose
        if len(message.items) == 1:
            item = replace(message.item, state=AttentionState.ACTIVE)
            subject = self.plain.headline(replace(message, purpose=first, items=[item]))
            agent = text.name(item.agent_name or "")
            subject = f"{subject} ({agent})" if agent else subject
        else:
            subject = f"{len(message.items)} requests wait for a person"
        return text.cut(text.escape_header(("Re: " if sent_before else "") + subject), MAX_SUBJECT_UNITS)

    def _text(self, message: Message) -> str:
        blocks = [self.plain.headline(message)]
        if len(message.items) == 1:
            facts = [f"{label}: {value}" for label, value in self.plain.facts(message)]
            blocks += ["\n".join(facts), text.web_link(message.item.link) or ""]
        else:
            for item in message.items:
                link = text.web_link(item.link)
                blocks.append(f"- {self.plain.item_line(item)}" + (f"\n  {link}" if link else ""))
        blocks.append(self.plain.footer(message) or "")
        return "\n\n".join(filter(None, blocks)) + "\n"

    def _html(self, message: Message) -> str:
        parts = [f"<p><strong>{self.markup.headline(message)}</strong></p>"]
        if len(message.items) == 1:
            rows = (f"<tr><td>{label}</td><td>{value}</td></tr>\n" for label, value in self.markup.facts(message))
            parts += [f"<table>\n{''.join(rows)}</table>", _anchor(message.item.link)]
        else:
            lines = (f"<li>{self.markup.item_line(item)} {_anchor(item.link)}</li>\n" for item in message.items)
            parts.append(f"<ul>\n{''.join(lines)}</ul>")
        footer = self.markup.footer(message)
        parts.append(f"<p><small>{footer}</small></p>" if footer else "")
        return "<!doctype html>\n<html><body>\n" + "\n".join(filter(None, parts)) + "\n</body></html>\n"


def mail_writer(sender: Address, template: str | None) -> MailWriter:
    """Return the writer for a sender, wording requests by `template` or by the fixed summaries."""
    return MailWriter(
        sender=sender,
        plain=Wording(text.as_is, templates.sentence(template, text.as_is)),
        markup=Wording(text.escape_html, _html_sentence(template)),
    )


def _html_sentence(template: str | None) -> templates.Sentence:
    """Say the plain sentence, escaped as a whole: one template serves both parts, so it holds no HTML."""
    plain = templates.sentence(template, text.as_is)
    return lambda item: text.escape_html(plain(item))


def _anchor(link: str | None) -> str:
    url = text.web_link(link)
    return f'<a href="{text.escape_html(url)}">Open</a>' if url else ""
