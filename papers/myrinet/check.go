package myrinet

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// Wait is a message that holds a buffer at host At and asks for one at host To.
type Wait struct {
	At, To      int32 // indices of hosts
	Held, Class Class
	Group       int // of the message
}

// Fault is a message of a group that does not come to every member once.
type Fault struct {
	Group      int
	Sender     int32 // indices of hosts
	Host       int32
	Copies     int // that come to Host: 0, or more than 1
	Dependents int // further faults of the group that are not listed
}

// Report has the findings of Check.
type Report struct {
	Messages int // followed: one for each group and sender
	Sends    int // of all messages
	Steps    int // the most sends, one after another, until a member has it
	// Faults has at most one for each group.
	Faults []Fault
	// Deadlock is a cycle of waits for buffers; nil if there is none.
	Deadlock []Wait
}

// Clean returns true if there are no faults and no deadlock.
func (r *Report) Clean() bool { return len(r.Faults) == 0 && r.Deadlock == nil }

// Check follows a message of every sender of every group. It
// checks that the message comes to each other member exactly once,
// and that the buffers which messages hold while they ask for
// others cannot close a cycle (section 4 and Fig. 6 of the paper,
// M16). A message keeps its buffer until all to whom the host
// sends it have taken it in. All groups share the buffers of a
// host, so schedules are safe together or not. The cycle is a
// shortest one through the host with the lowest ID that is on one.
//
// It takes time for all sends of all messages.
func (s *Schedule) Check() *Report {
	r := &Report{}
	c := checker{s: s, count: make([]int32, len(s.Hosts)), member: make([]bool, len(s.Hosts)),
		waits: make([][]Wait, len(s.Hosts)*(s.Classes+1))}
	for g := range s.Groups {
		c.group(r, g)
	}
	r.Deadlock = c.findCycle()
	return r
}

type checker struct {
	s      *Schedule
	count  []int32 // by host: copies of the message that is followed
	member []bool  // by host: it is in the group
	queue  []visit
	waits  [][]Wait // by host and held class
	used   []bool   // by send of the group: some message takes it
}

// visit is a copy of a message at a host.
type visit struct {
	at, from int32
	held     Class
	hops     int32 // left; -1 for no limit
	step     int32
}

func (c *checker) group(r *Report, g int) {
	grp := &c.s.Groups[g]
	c.used = slices.Grow(c.used[:0], len(grp.Sends))[:len(grp.Sends)]
	clear(c.used)
	for _, m := range grp.Members {
		c.member[m] = true
	}
	first := -1
	for _, o := range grp.Senders {
		r.Messages++
		c.followMessage(r, grp, o)
		for _, m := range grp.Members {
			bad := c.count[m] > 1 || m != o && c.count[m] == 0
			if bad && first >= 0 {
				r.Faults[first].Dependents++
			} else if bad {
				first = len(r.Faults)
				r.Faults = append(r.Faults, Fault{Group: g, Sender: o, Host: m, Copies: int(c.count[m])})
			}
		}
	}
	for i, s := range grp.Sends {
		if c.used[i] && s.Held != SendBuffer {
			at := int(s.At)*(c.s.Classes+1) + int(s.Held)
			for to := range c.s.receivers(s) {
				c.waits[at] = append(c.waits[at], Wait{At: s.At, To: to, Held: s.Held, Class: s.Class, Group: g})
			}
		}
	}
	for _, m := range grp.Members {
		c.member[m] = false
	}
}

// relays returns true if a host receives and sends by different ports.
func (h *Host) relays() bool { return h.Out != h.Port }

// receivers lists the hosts that get a message by one send. The sender is
// one if it is in the region and sends by another port than it receives by.
func (s *Schedule) receivers(x Send) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for to := x.To; to <= x.To+x.More; to++ {
			if (to != x.At || s.Hosts[to].relays()) && !yield(to) {
				return
			}
		}
	}
}

// followMessage follows a message of sender o: of each host's copies the first, so it ends.
// A copy that a host of a region must pass on does not count as that host's own.
func (c *checker) followMessage(r *Report, g *Group, o int32) {
	for _, m := range g.Members {
		c.count[m] = 0
	}
	if g.Method == TwoPhase {
		clear(c.count) // other hosts have copies, too
	}
	hops := int32(g.Hops)
	if hops == 0 {
		hops = -1
	}
	c.queue = append(c.queue[:0], visit{at: o, from: Anyone, held: SendBuffer, hops: hops})
	for i := 0; i < len(c.queue); i++ {
		v := c.queue[i]
		if v.hops == 0 {
			continue
		}
		r.Steps = max(r.Steps, int(v.step))
		for k, s := range g.Of(v.at, v.held, v.from) {
			c.used[c.index(g, v, k)] = true
			for to := range c.s.receivers(s) {
				r.Sends++
				x := visit{at: to, from: v.at, held: s.Class, hops: max(v.hops-1, -1), step: v.step + int32(k) + 1}
				if g.Method == TwoPhase && v.held == SendBuffer && len(g.Of(to, s.Class, v.at)) > 0 {
					c.queue = append(c.queue, x) // this copy is for another host
					continue
				}
				c.count[to]++
				if c.count[to] == 1 {
					c.queue = append(c.queue, x)
				}
			}
		}
	}
	for _, v := range c.queue {
		r.Steps = max(r.Steps, int(v.step))
	}
}

// index returns the index in g.Sends of the k-th send that Of returns for v.
func (c *checker) index(g *Group, v visit, k int) int {
	sends := g.Of(v.at, v.held, v.from)
	i, _ := slices.BinarySearchFunc(g.Sends, sends[0], compareSends)
	return i + k
}

func (c *checker) findCycle() []Wait {
	buffer := func(host int32, class Class) int32 { return host*int32(c.s.Classes+1) + int32(class) }
	var to []int32
	next := func(from int32) []int32 {
		to = to[:0]
		for _, w := range c.waits[from] {
			to = append(to, buffer(w.To, w.Class))
		}
		return to
	}
	components := graph.StronglyConnected(len(c.waits), next)
	if len(components) == 0 {
		return nil
	}
	cycle, _ := graph.ShortestCycle(components[0], next, 1, 0)
	list := make([]Wait, len(cycle))
	for i, b := range cycle {
		following := cycle[(i+1)%len(cycle)]
		k := slices.IndexFunc(c.waits[b], func(w Wait) bool { return buffer(w.To, w.Class) == following })
		list[i] = c.waits[b][k]
	}
	return list
}

// Explain describes a report, a line for each fault or wait: no lines if it is clean.
func (s *Schedule) Explain(r *Report) []string {
	var lines []string
	for _, f := range r.Faults {
		what := "does not come to"
		if f.Copies > 1 {
			what = fmt.Sprintf("comes %d times to", f.Copies)
		}
		lines = append(lines, fmt.Sprintf("group %q: a message of host %d %s host %d (%d more like this)",
			s.Groups[f.Group].Name, s.Hosts[f.Sender].ID, what, s.Hosts[f.Host].ID, f.Dependents))
	}
	if len(r.Deadlock) > 0 {
		lines = append(lines, "buffers wait for each other in a cycle:")
		for _, w := range r.Deadlock {
			lines = append(lines, fmt.Sprintf("    a message of group %q holds class %d at host %d and waits for class %d at host %d",
				s.Groups[w.Group].Name, w.Held, s.Hosts[w.At].ID, w.Class, s.Hosts[w.To].ID))
		}
	}
	return lines
}

// String writes one wait: "4/1 > 5/1" for class 1 at the hosts with the indices 4 and 5.
func (w Wait) String() string {
	return fmt.Sprintf("%d/%d > %d/%d", w.At, w.Held, w.To, w.Class)
}

// Cost is what the messages of a schedule use of a fabric.
type Cost struct {
	Sends     int     // of one message of each sender, in all
	Links     int     // between switches, that these cross in all
	MeanLinks float64 // of a send
}

// Cost follows a message of each sender along the paths of unicast tables.
// The packet of a first phase crosses each link of its paths once.
//
// Errors: hosts that the fabric lacks at their LIDs, or on a
// banyan network at their address; paths that do not arrive; an
// *lft.DomainError on banyan networks without wrap-around, and if
// tables have other paths for TwoPhase than destination tags give.
func (s *Schedule) Cost(f *fabric.Fabric, t *lft.Tables) (*Cost, error) {
	net, err := processors(f)
	if err != nil {
		return nil, err
	}
	// The port by which a host sends.
	out := make([]fabric.PortID, len(s.Hosts))
	for i, h := range s.Hosts {
		p := f.LIDPort(h.LID)
		if p == fabric.NoPort || f.PortGUID(p) != h.Port {
			return nil, fmt.Errorf("host %d of the schedule has LID %d and port GUID %s, and the fabric has no such port", h.ID, h.LID, h.Port)
		}
		if out[i] = p; net != nil {
			a, sends := net.Address(p)
			if a != int(h.ID) || sends || f.PortGUID(net.Outputs[a]) != h.Out {
				return nil, fmt.Errorf("host %d of the schedule receives at %s and sends by port GUID %s, and no processor has that address and these ports",
					h.ID, f.PortName(p), h.Out)
			}
			out[i] = net.Outputs[a]
		} else if h.relays() {
			return nil, fmt.Errorf("host %d of the schedule sends by port GUID %s, as processors of banyan networks do, and this is none", h.ID, h.Out)
		}
	}
	cost := &Cost{}
	var path []fabric.PortID
	c := checker{s: s, count: make([]int32, len(s.Hosts)), member: make([]bool, len(s.Hosts))}
	for g := range s.Groups {
		grp := &s.Groups[g]
		c.used = make([]bool, len(grp.Sends))
		for _, o := range grp.Senders {
			var r Report
			c.followMessage(&r, grp, o)
			cost.Sends += r.Sends
			// Links of the packet that switches copy.
			copied := map[fabric.PortID]bool{}
			for _, v := range c.queue[1:] {
				path, err = t.Path(f, out[v.from], s.Hosts[v.at].LID, path[:0])
				if err != nil {
					return nil, err
				}
				if net != nil && grp.Method == TwoPhase && len(path) != net.Stages+1 {
					return nil, &lft.DomainError{Engine: "two-phase", Reason: fmt.Sprintf(
						"it is a banyan network, and the tables do not lead forward from %s to %s: want those of engine banyan",
						f.PortName(out[v.from]), f.PortName(f.LIDPort(s.Hosts[v.at].LID)))}
				}
				for k := 1; k < len(path)-1; k++ {
					if grp.Method == TwoPhase && v.step == 1 {
						if copied[path[k]] {
							continue
						}
						copied[path[k]] = true
					}
					cost.Links++
				}
			}
		}
	}
	if cost.Sends > 0 {
		cost.MeanLinks = float64(cost.Links) / float64(cost.Sends)
	}
	return cost, nil
}

// Witness writes a cycle in one line: "1/1 > 2/1 > 1/1", by IDs.
func (s *Schedule) Witness(cycle []Wait) string {
	if len(cycle) == 0 {
		return ""
	}
	var b strings.Builder
	for _, w := range cycle {
		fmt.Fprintf(&b, "%d/%d > ", s.Hosts[w.At].ID, w.Held)
	}
	fmt.Fprintf(&b, "%d/%d", s.Hosts[cycle[0].At].ID, cycle[0].Held)
	return b.String()
}
