package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// Timed is a message that is sent at a moment.
type Timed struct {
	At Time
	Message
}

// Play sends messages at their moments, in any order and those of one moment in the
// order of the slice, and measures of each the time from its moment until the last
// receiver has it. Tags are not used. A trace does not say who receives a message to a
// group: it is complete with the last copy that arrives. Offered and Accepted are 0.
// maxTime, if not 0, is as for Burst.
func Play(ctx context.Context, net Network, cfg Config, messages []Timed, maxTime Time) (*Measured, error) {
	if len(messages) == 0 {
		return nil, errors.New("a trace without messages")
	}
	p := &play{messages: slices.Clone(messages), at: make([]Time, len(messages)), out: &Measured{}}
	slices.SortStableFunc(p.messages, func(a, b Timed) int { return cmp.Compare(a.At, b.At) })
	for i := range p.messages {
		p.messages[i].Tag = int64(i)
	}
	if first := p.messages[0].At; first < 0 {
		return nil, fmt.Errorf("a message at %s, before the start", first)
	}
	s, err := New(net, cfg, p)
	if err != nil {
		return nil, err
	}
	s.Wake(p.messages[0].At, 0)
	var hosts []fabric.PortID
	for i := range p.messages {
		hosts = append(hosts, p.messages[i].Src)
	}
	slices.Sort(hosts)
	l := newLimits(s, slices.Compact(hosts), firstStep)
	if err := l.runAll(ctx, s, maxTime, &p.err); err != nil {
		return nil, err
	}
	m := p.out
	m.closed(s, l)
	for i := range p.messages {
		msg := &p.messages[i]
		if p.at[i] == 0 {
			m.Incomplete++
			continue
		}
		took := p.at[i] - msg.At
		m.All.add(took)
		if msg.DLID >= mft.MinMLID {
			m.Multicast.add(took)
		} else {
			m.Unicast.add(took)
		}
	}
	return m, nil
}

// play drives a trace.
type play struct {
	messages []Timed // by time
	at       []Time  // by message: when its last copy has arrived; 0 before any has
	out      *Measured
	err      error
}

// Wake sends all messages of this moment, of which id is the first.
func (p *play) Wake(s *Sim, id int64) {
	for ; id < int64(len(p.messages)); id++ {
		m := &p.messages[id]
		if m.At > s.Now() {
			s.Wake(m.At, id)
			return
		}
		if err := s.Send(m.Message); err != nil && p.err == nil {
			p.err = fmt.Errorf("message at %s: %w", m.At, err)
		}
	}
}

// Deliver takes times.
func (p *play) Deliver(_ *Sim, d *Delivery) {
	if !d.Last {
		return
	}
	p.at[d.Tag] = d.At
	if d.DLID >= mft.MinMLID {
		p.out.Receiver.add(d.At - d.Born)
	}
}
