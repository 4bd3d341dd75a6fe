package layered

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// turns numbers the channels between switches, and the turns: the steps of a packet from
// one channel to the next. These are the edges of all possible channel dependency graphs.
// Channels are numbered by switch and port number, the turns of a channel by the channels
// of the switch that it leads to.
type turns struct {
	f       *fabric.Fabric
	first   []int32          // by switch: its first channel; one more at the end
	from    []int32          // by channel: the switch that it leaves
	to      []int32          // by channel: the switch that it leads to
	port    []fabric.PortNum // by channel
	unit    []uint64         // by channel: the load of a route
	channel []int32          // by PortID of switches: its channel, or -1
	turn    []int32          // by channel: its first turn; one more at the end
	into    []int32          // the channels, sorted by the switch that they lead to
	intoAt  []int32          // by switch: where its part of into begins; one more at the end
}

func newTurns(f *fabric.Fabric) *turns {
	n := f.NumSwitches()
	t := &turns{f: f, first: make([]int32, n+1), channel: slices.Repeat([]int32{-1}, int(f.PortBase(fabric.NodeID(n)))), intoAt: make([]int32, n+1)}
	unit := lft.LoadUnits(f)
	for s := range fabric.NodeID(n) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			t.channel[p] = int32(len(t.to))
			t.from = append(t.from, int32(s))
			t.to = append(t.to, int32(to[i]))
			t.port = append(t.port, f.Num(p))
			t.unit = append(t.unit, unit[p])
			t.intoAt[to[i]+1]++
		}
		t.first[s+1] = int32(len(t.to))
	}
	for s := range n {
		t.intoAt[s+1] += t.intoAt[s]
	}
	t.into = make([]int32, len(t.to))
	at := slices.Clone(t.intoAt)
	t.turn = make([]int32, len(t.to)+1)
	for c, v := range t.to {
		t.into[at[v]] = int32(c)
		at[v]++
		t.turn[c+1] = t.turn[c] + t.first[v+1] - t.first[v]
	}
	return t
}

func (t *turns) countTurns() int { return int(t.turn[len(t.turn)-1]) }

// turnFrom returns the number of the turn from channel c to channel d.
func (t *turns) turnFrom(c, d int32) int32 { return t.turn[c] + d - t.first[t.from[d]] }

// turnEnds returns the two channels of a turn.
func (t *turns) turnEnds(e int32) (c, d int32) {
	i, found := slices.BinarySearch(t.turn, e)
	if !found {
		i--
	}
	for t.turn[i+1] == e { // skip channels without a turn
		i++
	}
	return int32(i), t.first[t.to[i]] + e - t.turn[i]
}

// layer is one virtual lane: a growing set of turns that close no cycle, and an order of
// the channels in which all these turns rise.
type layer struct {
	*turns
	set   []uint16 // by turn: a bit for each layer that has it
	bit   uint16   // of this layer
	order *graph.Order[int32]
	// work is how many turns searches may still look at. At 0, addTurn refuses turns that
	// do not rise.
	work   int
	buffer []int32 // scratch of nextChannels and previousChannels
}

// newLayer returns an empty layer; order is its first order of the channels.
func newLayer(t *turns, set []uint16, number int, order []int32, work int) *layer {
	return &layer{turns: t, set: set, bit: 1 << number, order: graph.NewOrder(order), work: work}
}

// hasTurn returns true if the turn is in the layer.
func (l *layer) hasTurn(e int32) bool { return l.set[e]&l.bit != 0 }

// addTurn puts the turn e from c to d into the layer. It returns false if that closes a
// cycle, or no work is left to find that out.
func (l *layer) addTurn(e, c, d int32) bool {
	if l.hasTurn(e) {
		return true
	}
	if !l.order.Before(c, d) && (l.work <= 0 || !l.order.Add(c, d, l.nextChannels, l.previousChannels)) {
		return false
	}
	l.set[e] |= l.bit
	return true
}

// removeTurn removes a turn. The order stays valid.
func (l *layer) removeTurn(e int32) { l.set[e] &^= l.bit }

// nextChannels lists the channels that the layer's turns lead to from c.
func (l *layer) nextChannels(c int32) []int32 {
	first := l.first[l.to[c]]
	row := l.set[l.turn[c]:l.turn[c+1]]
	l.work -= len(row)
	l.buffer = l.buffer[:0]
	for i, set := range row {
		if set&l.bit != 0 {
			l.buffer = append(l.buffer, first+int32(i))
		}
	}
	return l.buffer
}

// previousChannels lists the channels from which the layer's turns lead to d.
func (l *layer) previousChannels(d int32) []int32 {
	u := l.from[d]
	into := l.into[l.intoAt[u]:l.intoAt[u+1]]
	l.work -= len(into)
	l.buffer = l.buffer[:0]
	for _, c := range into {
		if l.hasTurn(l.turnFrom(c, d)) {
			l.buffer = append(l.buffer, c)
		}
	}
	return l.buffer
}
