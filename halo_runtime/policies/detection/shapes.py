"""The shapes of keys that services give out, each by a part that no other text has.

Sources: the services' own pages, and the rules of detect-secrets and gitleaks.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = r"(?<![A-Za-z0-9])"
_END: Final = r"(?![A-Za-z0-9])"


def _shape(pattern: str, *marks: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    return marks, re.compile(_WORD + pattern)


SHAPES: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = (
    _shape(r"eyJ[A-Za-z0-9_-]{8,2000}+\.(?:eyJ)?[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,2}", "eyJ"),
    _shape(rf"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_END}", "AKIA", "ASIA", "ABIA", "ACCA"),
    _shape(r"AIza[A-Za-z0-9_-]{35}", "AIza"),
    _shape(r"ya29\.[A-Za-z0-9_-]{20,}", "ya29."),
    _shape(r"GOCSPX-[A-Za-z0-9_-]{24,}", "GOCSPX-"),
    _shape(r"gh[pousr]_[A-Za-z0-9]{30,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _shape(r"github_pat_[A-Za-z0-9_]{22,255}", "github_pat_"),
    _shape(
        r"gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_.-]{20,}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glsoat-"
    ),
    _shape(r"xox[abeoprs]-[A-Za-z0-9-]{10,}", "xox"),
    _shape(r"xapp-\d-[A-Za-z0-9-]{10,}", "xapp-"),
    _shape(r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}", "hooks.slack.com"),
    _shape(r"sk-(?:ant|or|proj|svcacct|admin|lf)-[A-Za-z0-9_-]{16,}", "sk-"),
    _shape(rf"sk-(?=[A-Za-z]*+\d)[A-Za-z0-9]{{20,}}+(?:-[A-Za-z0-9]+)*{_END}", "sk-"),
    _shape(r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}", "k_live_", "k_test_"),
    _shape(r"whsec_[A-Za-z0-9+/]{24,}=*", "whsec_"),
    _shape(rf"hf_[A-Za-z0-9]{{30,}}{_END}", "hf_"),
    _shape(rf"npm_[A-Za-z0-9]{{36}}{_END}", "npm_"),
    _shape(r"pypi-AgE[A-Za-z0-9_-]{50,}", "pypi-"),
    _shape(r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "SG."),
    _shape(rf"SK[0-9a-f]{{32}}{_END}", "SK"),
    _shape(rf"\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}", ":AA"),
    _shape(rf"key-[0-9a-f]{{32}}{_END}", "key-"),
    _shape(rf"do[oprt]_v1_[0-9a-f]{{64}}{_END}", "_v1_"),
    _shape(rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}", "shpat_", "shpca_", "shppa_", "shpss_"),
    _shape(r"(?:sq0[a-z]{3}-|EAAA)[A-Za-z0-9_-]{22,}", "sq0", "EAAA"),
    _shape(rf"dapi[0-9a-f]{{32}}(?:-\d)?{_END}", "dapi"),
    _shape(r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}", "lin_"),
    _shape(r"ntn_[A-Za-z0-9]{40,}", "ntn_"),
    _shape(r"fig[dour]_[A-Za-z0-9_-]{30,}", "figd_", "figo_", "figu_", "figr_"),
    _shape(rf"r8_[A-Za-z0-9]{{37}}{_END}", "r8_"),
    _shape(r"gsk_[A-Za-z0-9]{30,}", "gsk_"),
    _shape(r"xai-[A-Za-z0-9]{40,}", "xai-"),
    _shape(r"pplx-[A-Za-z0-9]{30,}", "pplx-"),
    _shape(r"tgp_v1_[A-Za-z0-9_-]{30,}", "tgp_v1_"),
    _shape(r"hv[sbr]\.[A-Za-z0-9_-]{24,}", "hvs.", "hvb.", "hvr."),
    _shape(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}", ".atlasv1."),
    _shape(r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9.]{40,}", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa."),
    _shape(r"AGE-SECRET-KEY-1[A-Z0-9]{58}", "AGE-SECRET-KEY"),
    _shape(r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}", "AccountKey=", "SharedAccessKey="),
    _shape(r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}", "8Q~"),
    _shape(r"EZ[AT]K[A-Za-z0-9]{54}", "EZAK", "EZTK"),
    _shape(r"sntry[su]_[A-Za-z0-9+/=_-]{40,}", "sntry"),
    _shape(r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}", "glsa_"),
    _shape(r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    _shape(r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-"),
    _shape(r"rubygems_[0-9a-f]{48}", "rubygems_"),
    _shape(r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}", "dckr_"),
)
"""What must stand in a text for a shape to be looked for, any of them, and the shape."""
