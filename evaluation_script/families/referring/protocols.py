"""How answers to expressions are scored: RefCOCO and its kin, gRefCOCO, ReasonSeg."""

from __future__ import annotations

from typing import ClassVar, Dict, Tuple

from ...values import dataclass

#: The layouts of truths, which are the forms of protocols.
REFCOCO, GREFCOCO, REASONSEG = "refcoco", "grefcoco", "reasonseg"

_METRICS = {
    REFCOCO: ("oIoU", "mIoU", "P@0.5", "P@0.6", "P@0.7", "P@0.8", "P@0.9"),
    GREFCOCO: ("gIoU", "cIoU", "N-acc", "T-acc", "Pr@0.7", "Pr@0.8", "Pr@0.9"),
    REASONSEG: ("gIoU", "cIoU"),
}


@dataclass(frozen=True)
class ReferringProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "referring"

    name: str
    about: str
    form: str
    #: As the benchmark's script computes it, with its quirks.
    official: bool = False
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        return _METRICS[self.form]


_OWN_SIZE = "each sentence a sample, masks at the size of their picture"

_ROWS = (
    ReferringProtocol("refcoco", f"oIoU, mIoU and P@ of RefCOCO: {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol("refcoco-plus", f"oIoU, mIoU and P@ of RefCOCO+: {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol("refcocog", f"oIoU, mIoU and P@ of RefCOCOg: {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol(
        "grefcoco",
        "gIoU, cIoU, N-acc, T-acc: an empty mask without a flag says no target, and a withdrawn mask is empty.",
        GREFCOCO,
    ),
    ReferringProtocol(
        "grefcoco-official",
        "as ReLA's evaluator, in fractions: a withdrawn mask widens cIoU's union, a target without a pixel scores 0.",
        GREFCOCO,
        official=True,
    ),
    ReferringProtocol("reasonseg", "gIoU and cIoU of pictures, exact; ignored pixels leave both sides.", REASONSEG),
    ReferringProtocol(
        "reasonseg-official",
        "as LISA's validation: 1e-5 in each union and in the count, numbers of 32 bits.",
        REASONSEG,
        official=True,
    ),
)

REFERRING_PROTOCOLS: Dict[str, ReferringProtocol] = {protocol.name: protocol for protocol in _ROWS}
