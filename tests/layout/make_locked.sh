#!/bin/sh
# Makes tests/layout/fixtures/locked-*.pdf (one page, user password "sesame") with qpdf.
set -eu
cd "$(dirname "$0")/fixtures"
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
cat >"$tmp" <<'PDF'
%PDF-1.5
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 42>>stream
BT /F 12 Tf 50 100 Td (secret words) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R/Size 6>>
%%EOF
PDF
# qpdf repairs the missing cross-reference table and says so (status 3).
qpdf --deterministic-id "$tmp" plain.tmp.pdf || [ $? -eq 3 ]
qpdf --static-id --static-aes-iv --allow-weak-crypto --encrypt sesame owner 128 --use-aes=n -- \
    plain.tmp.pdf locked-rc4.pdf
qpdf --static-id --static-aes-iv --encrypt sesame owner 256 -- plain.tmp.pdf locked-aes256.pdf
rm plain.tmp.pdf
