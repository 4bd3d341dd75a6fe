package jobs

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/traffic"
)

// Work is what a job sends, message by message.
type Work struct {
	Job   string
	Hosts int
	Ranks int
	Parts []WorkPart // which run at once: one for each set of ports that run patterns among themselves
}

// WorkPart is the messages of a set of ranks. Patterns follow each other in the order of the
// file, each as often as its weight says.
type WorkPart struct {
	Program *traffic.Program
	Ports   []fabric.PortID // by rank; the ports of storage come after the ranks
	Hosts   []int32         // by rank: ranks of one host have one number
	Ranks   int             // without storage and switches
	Nodes   int             // how many of the last ranks are switches of a Reduction
}

// PartsOf lists the parts of all works.
func PartsOf(works []Work) (list []*WorkPart) {
	for i := range works {
		for k := range works[i].Parts {
			list = append(list, &works[i].Parts[k])
		}
	}
	return list
}

// MulticastGroups returns a group "part I" for each part in which a rank sends to all; I is its
// index in PartsOf. A port that is the only sender does not receive.
func MulticastGroups(works []Work) (list []mft.Group) {
	for i, p := range PartsOf(works) {
		g := mft.Group{Name: fmt.Sprintf("part %d", i), Receivers: slices.Compact(slices.Sorted(slices.Values(p.Ports[:p.Ranks])))}
		toAll := text.Where(p.Program.Messages, func(m traffic.Message) bool { return m.Dst == traffic.All })
		g.Senders = text.Each(toAll, func(m traffic.Message) fabric.PortID { return p.Ports[m.Src] })
		slices.Sort(g.Senders)
		if g.Senders = slices.Compact(g.Senders); len(g.Senders) == 1 {
			g.Receivers = slices.DeleteFunc(g.Receivers, func(p fabric.PortID) bool { return p == g.Senders[0] })
		}
		if len(g.Senders) > 0 && len(g.Receivers) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// WorkOptions are the settings of Works.
type WorkOptions struct {
	// Scale is the part of the file's bytes to send. 0 chooses the greatest power of 1/2, up to 1,
	// with at most MostPackets packets, or PacketsEach for each message.
	Scale     float64
	MTU       int  // bytes of data in a packet; 0 for one packet per message
	Multicast bool // broadcasts and all-gathers send each part once
	// Reductions are trees for all-reduces, by part; nil for none.
	Reductions []*Reduction
}

// MostPackets bounds the packets of all jobs if Works chooses the scale; PacketsEach for each
// message is the bound if that is more.
const (
	MostPackets = 1 << 20
	PacketsEach = 4
)

// Bounds of all works.
const (
	allPackets  = 1 << 24
	allMessages = 1 << 22
)

// errTooMuch is the error that works are above a bound.
var errTooMuch = errors.New("too much")

// Works returns all messages of the jobs, the part of the bytes that they have, and the bytes of
// background that belong to them. A smaller part has fewer runs of each pattern, down to one, and
// then smaller sizes.
func (t *Traffic) Works(opt WorkOptions) (list []Work, scale, background float64, err error) {
	// If one run of each pattern without a byte is too much, any part of the bytes is.
	if _, _, err := t.works(opt, 0); errors.Is(err, errTooMuch) {
		return nil, 0, 0, fmt.Errorf("%w, however little each sends; want fewer ranks", err)
	}
	scale = opt.Scale
	if scale == 0 {
		scale = 1
		for bytes := t.bytes(); opt.MTU > 0 && bytes*scale > float64(PacketsEach*allMessages*opt.MTU); scale /= 2 {
			continue
		}
	}
	for {
		var bytes int64
		list, bytes, err = t.works(opt, scale)
		if t.background > 0 {
			background = float64(float64(bytes)*t.background) / (1 - t.background)
		}
		switch {
		case err == nil:
			return list, scale, background, nil
		case !errors.Is(err, errTooMuch):
			return nil, 0, 0, err
		case opt.Scale > 0:
			return nil, 0, 0, fmt.Errorf("%w; want a smaller part of the bytes than %g", err, scale)
		}
		scale /= 2
	}
}

// bytes returns the bytes that all jobs send between hosts.
func (t *Traffic) bytes() (sum float64) {
	for _, j := range t.jobs {
		senders := t.senders(j)
		for dst, to := range j.ends {
			for _, amount := range senders(dst) {
				sum += float64(float64(amount)*float64(t.lids(to))) / scale
			}
		}
	}
	return sum
}

// works writes a part of what all jobs send, and counts its bytes between hosts.
func (t *Traffic) works(opt WorkOptions, part float64) (list []Work, bytes int64, err error) {
	packets, messages, at := int64(0), 0, 0
	for _, j := range t.jobs {
		w := Work{Job: j.name, Hosts: len(j.hosts), Ranks: j.ranks}
		for set := 0; ; set++ {
			var tree *Reduction
			if at < len(opt.Reductions) {
				tree = opt.Reductions[at]
			}
			p, err := j.part(set, opt.Multicast, tree, part, allMessages-messages)
			if err != nil {
				return nil, 0, err
			}
			if p == nil {
				break
			}
			at++
			for _, m := range p.Program.Messages {
				messages++
				copies := int64(1)
				switch {
				case m.Dst == traffic.All:
					copies = int64(p.Ranks - 1)
				case p.Hosts[m.Src] == p.Hosts[m.Dst]:
					continue
				}
				bytes += m.Bytes * copies
				if opt.MTU == 0 {
					packets += min(m.Bytes, 1)
				} else {
					packets += (m.Bytes + int64(opt.MTU) - 1) / int64(opt.MTU)
				}
			}
			if packets > allPackets {
				return nil, 0, fmt.Errorf("%s and the jobs before it send %w: more than %s packets", j.name, errTooMuch, text.Grouped(allPackets))
			}
			w.Parts = append(w.Parts, *p)
		}
		list = append(list, w)
	}
	if opt.Scale == 0 && packets > max(MostPackets, int64(PacketsEach*messages)) {
		return nil, 0, errTooMuch // for a part that Works chooses
	}
	return list, bytes, nil
}

// part writes what a set of ranks sends, in at most that many messages; nil without such a set.
// share is the part of the bytes. All-reduces use tree unless it is nil.
func (j *flows) part(set int, multicast bool, tree *Reduction, share float64, messages int) (*WorkPart, error) {
	var streams []*stream
	for i := range j.streams {
		if j.streams[i].set == set {
			streams = append(streams, &j.streams[i])
		}
	}
	if streams == nil {
		return nil, nil
	}
	base := streams[0].end[:len(streams[0].end)-streams[0].storage]
	p := &WorkPart{Ranks: len(base)}
	ends := slices.Clone(base)
	storage := make(map[int32]int32) // by index in ends of flows: rank
	members := make([][]int32, len(streams))
	for i, s := range streams {
		for rank, e := range s.end {
			r := int32(rank)
			if rank >= len(base) {
				var known bool
				if r, known = storage[e]; !known {
					r = int32(len(ends))
					storage[e], ends = r, append(ends, e)
				}
			}
			members[i] = append(members[i], r)
		}
	}
	for _, e := range ends {
		p.Ports, p.Hosts = append(p.Ports, j.ends[e]), append(p.Hosts, j.hostOf[e])
	}
	along := tree.addTo(p)
	w := traffic.NewWriter(len(p.Ports), messages)
	w.Multicast, w.Tree = multicast, along
	for i, s := range streams {
		times := max(1, math.Round(s.weight*share))
		size := s.size * s.weight * share / times
		for range int(times) {
			var long *traffic.TooLongError
			if err := w.Add(s.operation, members[i], size); errors.As(err, &long) {
				return nil, fmt.Errorf("%s and the jobs before it send %w: %w", j.name, errTooMuch, &traffic.TooLongError{Limit: allMessages})
			} else if err != nil {
				return nil, err
			}
		}
	}
	p.Program = w.Program()
	return p, nil
}
