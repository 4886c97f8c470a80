"""Which requests the server answers: pure functions of a request's head."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

TOKEN_HEADER = "X-Perfuse-Token"
MOST_BODY_BYTES = 1 << 20
MOST_QUERY_BYTES = 8192

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data: blob:; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: HTTP status, code for programs, message for people."""

    status: int
    code: str
    message: str


def new_token() -> str:
    """A secret that only the page that the command opened knows."""
    return secrets.token_urlsafe(32)


def refusal_of_host(host: str | None, port: int) -> Refusal | None:
    """Refuses requests that were sent to another name than this machine's own.

    A page of another site whose name its owner points to this machine (DNS rebinding) sends that name.
    """
    if host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        return None
    return Refusal(421, "foreign_host", "this server answers requests to 127.0.0.1 only")


def refusal_of_origin(headers: Mapping[str, str], port: int, *, is_navigation_target: bool) -> Refusal | None:
    """Refuses requests that another site's page sent, by the headers that browsers set and pages cannot."""
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
    if origin is not None and origin not in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
        return Refusal(403, "foreign_origin", "a page of another origin sent this request")
    allowed = ("same-origin", "none") if is_navigation_target else ("same-origin",)
    # The first page may be opened by a link in a terminal, a mail or another page: it contains no data.
    if site is not None and site not in allowed and not is_navigation_target:
        return Refusal(403, "foreign_origin", "a page of another origin sent this request")
    return None


def refusal_of_symbol_origin(headers: Mapping[str, str], port: int, allowed: str) -> Refusal | None:
    """Refuses questions of pages of other sites than the Firefox Profiler; programs send no origin."""
    own = (f"http://127.0.0.1:{port}", f"http://localhost:{port}")
    if headers.get("Origin") in (None, allowed, *own):
        return None
    return Refusal(403, "foreign_origin", f"only pages of {allowed} may ask for symbols")


def symbol_headers(origin: str | None, allowed: str) -> dict[str, str]:
    """Headers of answers about symbols: the Firefox Profiler, and no other site, may read them."""
    if origin != allowed:
        return {"Vary": "Origin"}
    return {
        "Vary": "Origin",
        "Access-Control-Allow-Origin": allowed,
        "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
        "Access-Control-Allow-Headers": "content-type, user-agent",
        "Access-Control-Max-Age": "600",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def symbol_path(path: str, token: str) -> str | None:
    """The question in a path that starts with the secret of the symbol server; None where it does not."""
    given, slash, rest = path.removeprefix("/").partition("/")
    if not slash or not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return None
    return f"/{rest}"


def refusal_of_token(given: str | None, token: str) -> Refusal | None:
    """Refuses requests without the secret of this run."""
    if given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return None
    message = "the token is missing or of another run: open the URL that the terminal shows"
    return Refusal(401, "wrong_token", message)


def refusal_of_body(headers: Mapping[str, str]) -> tuple[Refusal | None, int]:
    """Refuses bodies without a length, or that are too large; else the length."""
    if "Transfer-Encoding" in headers:
        return Refusal(411, "length_required", "a body needs Content-Length"), 0
    stated = headers.get("Content-Length")
    if stated is None:
        return Refusal(411, "length_required", "a body needs Content-Length"), 0
    if not (stated.isascii() and stated.isdecimal()):
        return Refusal(400, "bad_length", "Content-Length is not a number"), 0
    if len(stated) > 10 or int(stated) > MOST_BODY_BYTES:
        return Refusal(413, "too_large", f"a body may have {MOST_BODY_BYTES:,} bytes"), 0
    return None, int(stated)
