"""What is wrong with a bridge, or would be, and what mends it: files, addresses, programs, names and backends.

It looks and changes nothing. Backends are started by whoever is passed in as the prober, so nothing here knows how.
"""

from bridgehead.diagnosis.examine import Prober, Question, diagnose
from bridgehead.diagnosis.harmless import harmless_tools
from bridgehead.diagnosis.model import Diagnosis, Finding, Level, Probe, Program, Progress, Trial

__all__ = [
    "Diagnosis",
    "Finding",
    "Level",
    "Probe",
    "Prober",
    "Program",
    "Progress",
    "Question",
    "Trial",
    "diagnose",
    "harmless_tools",
]
