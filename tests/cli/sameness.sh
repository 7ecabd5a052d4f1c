# What must never change a byte: the draft under --accept exact, the instruction set, the threads.
for doc in report.pdf invoice.pdf tables.pdf korean.pdf letter.png letter-photo.jpg; do
    run convert "$samples/$doc" --accept exact --format json -o exact.json
    [ $code -eq 0 ] || fail "$doc: exit $code with --accept exact: $(cat err)"
    # Regions that the card keeps from the model have no text without a draft: exit 7.
    run convert "$samples/$doc" --draft none --format json -o none.json
    [ $code -eq 0 ] || [ $code -eq 7 ] || fail "$doc: exit $code with --draft none: $(cat err)"
    n=$("$python" "$root/tests/cli/check_json.py" regions exact.json none.json) ||
        fail "$doc: a draft changed what was read"
    read_by_model=$(json none.json 'sum(r["accept"]["rule"] == "plain" and r["status"] == "ok"
                                        for p in d["pages"] for r in p["regions"])')
    [ "$n" -eq "$read_by_model" ] || fail "$doc: $n regions compared of $read_by_model"
    case $doc in
    report.pdf | invoice.pdf)
        [ "$n" -ge 10 ] || fail "$doc: only $n regions were compared"
        json exact.json '[p["markdown"] for p in d["pages"]]' >exact
        json none.json '[p["markdown"] for p in d["pages"]]' >none
        cmp exact none ||
            fail "$doc: the whole differs"
        steps=$(json exact.json 'd["stats"]["target_steps"]')
        [ $((2 * steps)) -lt "$(json none.json 'd["stats"]["target_steps"]')" ] ||
            fail "$doc: drafts save no steps"
        ;;
    esac
done

# The reference kernels are slow: a page of three short regions.  How many steps a text took depends on
# what ran beside it; the text and its probability to the last digit do not.
regions='[(r["kind"], r["markdown"], r["logprob"], r["status"]) for r in d["pages"][0]["regions"]]'
"$python" "$root/tests/cli/make_pdf.py" 1 short.pdf
expect 0 convert short.pdf --accept exact --format json
json out "$regions" >truth
for isa in ref avx2 avx512; do
    [ $isa = ref ] || grep -qw "${isa/avx512/avx512bw}" /proc/cpuinfo || continue
    GALLEY_CPU=$isa expect 0 convert short.pdf --accept exact --format json
    json out "$regions" >seen
    same seen truth "GALLEY_CPU=$isa"
done

expect 0 convert "$samples/report.pdf" --threads 1
cp out truth.md
for threads in 2 5; do
    expect 0 convert "$samples/report.pdf" --threads $threads
    same out truth.md "--threads $threads"
done
