package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sim"
)

// simLimits is what kept hosts from sending at a point.
type simLimits struct {
	Resource sim.Resource `json:"resource"`
	// Shares of the time of all hosts. In the rest they have nothing to send.
	Sending float64 `json:"sending"`
	Blocked float64 `json:"blocked"`
	// Shares of the time in which they are blocked, by what blocks them.
	HostLink float64 `json:"by_host_link"`
	Cable    float64 `json:"by_cable"`
	Buffer   float64 `json:"by_buffer"`
	Credit   float64 `json:"by_credit"`
	// The link that blocks most, by the port that sends into it; where none does, the busiest one.
	Link struct {
		waitedPort
		Busy float64 `json:"busy"` // share of the time in which it sends
	} `json:"link"`
	FullHostLinks int `json:"full_host_links"` // directions of links that are
	FullCables    int `json:"full_cables"`
}

// limited is what a measurement says of limits, nil where it says nothing.
func limited(l *sim.Limits, f *fabric.Fabric) *simLimits {
	if l.Samples == 0 {
		return nil
	}
	out := &simLimits{
		Resource: l.Limit, Sending: l.Sending, Blocked: l.Blocked, FullHostLinks: l.Full[sim.HostLink], FullCables: l.Full[sim.Cable],
		HostLink: l.By[sim.HostLink], Cable: l.By[sim.Cable], Buffer: l.By[sim.Buffer], Credit: l.By[sim.Credit],
	}
	out.Link.waitedPort, out.Link.Busy = portWaited(f, l.Link), l.Busy
	out.Link.Text = f.PortName(l.Link)
	return out
}

// limit is the resource in a table, "" where nothing was measured.
func (x *simResult) limit() string {
	if x.Limits == nil {
		return ""
	}
	return x.Limits.Resource.String()
}

// String says in words what limits.
func (l *simLimits) String() string {
	var b strings.Builder
	at := fmt.Sprintf("%s, busy %.0f %% of the time", l.Link.Text, 100*l.Link.Busy)
	switch l.Resource {
	case sim.HostLink:
		fmt.Fprintf(&b, "links of hosts are full (%s), most of all %s", directions(l.FullHostLinks), at)
	case sim.Cable:
		fmt.Fprintf(&b, "cables are full (%s), most of all %s", directions(l.FullCables), at)
	case sim.Buffer:
		fmt.Fprintf(&b, "no link is full, and packets wait in buffers behind the first one of their lane, most of all for %s", at)
	case sim.Credit:
		fmt.Fprintf(&b, "buffers are too small for the length of cables and the delays of switches and credits, most of all behind %s", at)
	default:
		fmt.Fprintf(&b, "hosts offer no more; the busiest link is %s", at)
	}
	if l.Blocked > 0 {
		var parts []string
		for _, p := range []struct {
			share float64
			what  string
		}{{l.HostLink, "links of hosts"}, {l.Cable, "cables"}, {l.Buffer, "buffers"}, {l.Credit, "credits"}} {
			if p.share >= 0.005 {
				parts = append(parts, fmt.Sprintf("%s %.0f %%", p.what, 100*p.share))
			}
		}
		fmt.Fprintf(&b, "; hosts are blocked %.0f %% of the time, by %s", 100*l.Blocked, text.List(parts, "and"))
	}
	return b.String()
}

func directions(n int) string { return text.CountGrouped(n, "direction", "directions") }

// writeLimits says what limits the first point of each routing and size that something limits.
func (r *simRun) writeLimits(w io.Writer) {
	type curve struct {
		routing string
		bytes   int
	}
	said := map[curve]bool{}
	for i := range r.results {
		p, x := &r.points[i], &r.results[i]
		at := curve{p.Routing, p.Bytes}
		if x.Limits == nil || x.Limits.Resource == sim.Offered || said[at] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(w)
		}
		said[at] = true
		fmt.Fprintf(w, "limit: %s%s\n", p.text(), x.Limits)
	}
}
