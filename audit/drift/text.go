package drift

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/verify"
)

// Line writes the summary of a report on the tables of dir on one line.
func (r *Report) Line(dir string) string {
	var b strings.Builder
	n := text.Grouped[int]
	switch {
	case r.Loops > 0:
		fmt.Fprintf(&b, "%s: %s; ", dir, text.CountGrouped(r.Loops, "LID or MLID loops", "LIDs or MLIDs loop"))
	case r.Equal():
		fmt.Fprintf(&b, "%s: as compiled; ", dir)
	default:
		fmt.Fprintf(&b, "%s: drifted; ", dir)
	}
	fmt.Fprintf(&b, "%s of %s differ", n(r.Drifted), text.CountGrouped(r.Switches, "switch", "switches"))
	if r.Unread > 0 {
		fmt.Fprintf(&b, ", %s could not be compared", n(r.Unread))
	}
	cables := int64(0)
	for i := range r.Findings {
		if x := &r.Findings[i]; x.Rule == Cable && x.Severity == verify.Error {
			cables += x.Count
		}
	}
	if cables > 0 {
		fmt.Fprintf(&b, ", %s to a cable that is gone or moved", text.CountGrouped(cables, "port sends", "ports send"))
	}
	for _, x := range []struct {
		name string
		c    *Counts
	}{{"LFT entries", r.LFT}, {"MFT masks", r.MFT}, {"SL-to-VL maps", r.SL2VL}, {"adaptive choices", r.Choices}} {
		if x.c != nil {
			fmt.Fprintf(&b, "; %s %s: %s missing, %s extra, %s changed", n(x.c.Compared), x.name, n(x.c.Missing), n(x.c.Extra), n(x.c.Changed))
		}
	}
	return b.String()
}

// Print writes a report on the tables of dir for people: only one line if single is set. Unless
// verbose is set, it writes nothing if no finding is above a note.
func (r *Report) Print(b *text.Sheet, dir string, single, verbose bool) {
	if r.Worst() <= verify.Note && !verbose {
		return
	}
	fmt.Fprintln(b, r.Line(dir))
	if !single {
		report.WriteFindings(b, slices.DeleteFunc(slices.Clone(r.Findings), func(x verify.Finding) bool {
			return x.Rule == Missing || x.Rule == Changed || x.Rule == Extra || x.Severity <= verify.Note && !verbose // written by switch, below
		}), report.Options{Verbose: verbose, Rules: Rules})
		const most = 20
		for i := range r.PerSwitch {
			if r.PerSwitch[i].Empty {
				continue // a finding says so
			}
			if i == most && !verbose {
				fmt.Fprintf(b, "\n%s more differ; -v prints them all\n", text.Grouped(len(r.PerSwitch)-i))
				break
			}
			writeDrifted(b, &r.PerSwitch[i])
		}
	}
}

// writeDrifted prints the entries of a switch that differ.
func writeDrifted(b *text.Sheet, s *Switch) {
	fmt.Fprintf(b, "\n%q (%s): %d missing, %d extra, %d changed\n", s.Name.Text, s.Switch,
		s.LFT.Missing+s.MFT.Missing, s.LFT.Extra+s.MFT.Extra, s.LFT.Changed+s.MFT.Changed+s.SL2VL.Changed+s.Choices.Changed)
	more := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(b, "    and %s more %s\n", text.Grouped(n), what)
		}
	}
	for _, e := range s.Entries {
		fmt.Fprintf(b, "    LID %d: %s, meant %s\n", e.LID, outOf(s, e.Live), outOf(s, e.Meant))
	}
	more(s.LFT.Differ()-len(s.Entries), "entries")
	for _, m := range s.Masks {
		var words []string
		if len(m.Missing) > 0 {
			words = append(words, "lacks "+portList(s, m.Missing))
		}
		if len(m.Extra) > 0 {
			words = append(words, "was not meant to have "+portList(s, m.Extra))
		}
		fmt.Fprintf(b, "    MLID %#x: %s\n", uint16(m.MLID), strings.Join(words, ", "))
	}
	more(s.MFT.Differ()-len(s.Masks), "masks")
	for _, m := range s.Maps {
		fmt.Fprintf(b, "    port %s to port %s: VLs %v, meant %v\n", s.Labels.Text(m.In), s.Labels.Text(m.Out), m.Live, m.Meant)
	}
	more(s.SL2VL.Differ()-len(s.Maps), "maps")
	for _, x := range s.Sets {
		plft := ""
		if x.PLFT > 0 {
			plft = fmt.Sprintf(", PLFT %d", x.PLFT)
		}
		fmt.Fprintf(b, "    LID %d%s: %s, meant %s\n", x.LID, plft, x.Live, x.Meant)
	}
	more(s.Choices.Differ()-len(s.Sets), "choices")
}

func outOf(s *Switch, p fabric.PortNum) string {
	if p == fabric.NoPath {
		return "no entry"
	}
	return "port " + s.Labels.Text(p)
}

func portList(s *Switch, ports []int) string {
	name := "port "
	if len(ports) > 1 {
		name = "ports "
	}
	return name + strings.Join(s.Labels.Texts(ports), ", ")
}
