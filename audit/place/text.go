package place

import (
	"fmt"

	"github.com/ibweave/ibweave/internal/text"
)

// Print writes advice for people.
func (r *Result) Print(b *text.Sheet) {
	b.Row("job", "%s, %s of %s", text.Count(r.Hosts, "host", "hosts"), r.Pattern, text.Bytes(r.Bytes))
	b.Row("free", "%d of %s", r.Free, text.Count(r.All, "host", "hosts"))
	if len(r.Sets) == 0 {
		b.Row("sets", "none: too few hosts are free")
		return
	}
	b.Row("sets", "%d tried", r.Tried)
	t := b.Table()
	fmt.Fprintln(t, "\nSET\tCOST\tJOB\tALONE\tCROSSBAR\tDELAY\tSHARED\tHOPS\tLEAVES\tWHOLE\tFOUND BY")
	for i := range r.Sets {
		s := &r.Sets[i]
		delay := text.Seconds(s.Delay)
		if s.Delayed != "" {
			delay += " of " + s.Delayed
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%.2f\t%d\t%d\t%s\n", s.Rank, text.Seconds(s.Cost), text.Seconds(s.Seconds), text.Seconds(s.Alone), text.Seconds(s.Ideal),
			delay, s.Shared, s.Hops, s.Leaves, s.Whole, s.Families[0])
	}
	_ = t.Flush() // never fails
	t = b.Table()
	for i, head := 0, "\nSET\tBUSIEST SHARED CABLE\t\tTIME\tRUNNING\tADDED\n"; i < len(r.Sets); i++ {
		if x := r.Sets[i].Busiest; x != nil {
			fmt.Fprintf(t, "%s%d\t%s\t-> %s\t%s\t%s\t%s\n", head, i+1, x.From.Unquoted(), x.To.Unquoted(), text.Seconds(x.Seconds), text.Bytes(x.Running), text.Bytes(x.Added))
			head = ""
		}
	}
	fmt.Fprintln(t, "\nSET\tHOSTS")
	for i := range r.Sets {
		fmt.Fprintf(t, "%d\t%s\n", i+1, r.Sets[i].Hosts)
		if lost := r.Sets[i].Lost; lost > 0 {
			fmt.Fprintf(t, "\t%s that the tables do not deliver\n", text.Bytes(lost))
		}
	}
	_ = t.Flush()
}
