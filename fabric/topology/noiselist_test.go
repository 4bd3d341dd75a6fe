package topology_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// noisyList is a form that has a line for each port or each link, and no stanzas.
type noisyList struct {
	Append func([]byte, *fabric.Fabric) []byte // writes a fabric
	// LID is how a LID stands in a line, such as " %d ", and Bad what may stand in its place where
	// no port can have it; none for a form without LIDs.
	LID string
	Bad []string
	// Cables says that nodes without a cable are not in it.
	Cables bool
	// Head begins the lines in front of which foreign lines may stand, as those of nodes. Without
	// any, foreign lines stand in front of the list and behind it.
	Head []string
}

// decimalList is a list whose LIDs are decimal numbers between blanks.
func decimalList(write func([]byte, *fabric.Fabric) []byte, head ...string) noisyList {
	return noisyList{Append: write, LID: " %d ", Bad: []string{"65535", "0", "49152", "70000", "18446744073709551616"}, Head: head}
}

// subnetNoise is OpenSM's list of links, which write writes.
func subnetNoise(write func([]byte, *fabric.Fabric) []byte) noisyList {
	return noisyList{Append: write, LID: " LID:%04X ", Bad: []string{"FFFF", "C000", "0000"}, Cables: true}
}

// makeNoisyList is makeNoise for a list. It has no loopback plugs.
func makeNoisyList(f *fabric.Fabric, form noisyList, seed uint64) (*noisyText, error) {
	m := &maker{f: f, rand: rand.New(rand.NewPCG(seed, 0x6c697374)), said: map[fabric.PortID]string{}}
	m.t.Fabric = f
	marked := f
	if len(form.Bad) > 0 && f.MaxLID() > 0 && m.may() {
		var err error
		if marked, err = m.markLIDs(form.Bad); err != nil {
			return nil, err
		}
	}
	if len(form.Bad) > 0 {
		m.listInvalid()
		m.t.InvalidLIDs = slices.DeleteFunc(m.t.InvalidLIDs, func(p fabric.PortID) bool { return form.Cables && !cabled(f, p) })
	}
	text := string(form.Append(nil, marked))
	for p, said := range m.said {
		was := fmt.Sprintf(form.LID, marked.LID(p))
		text = strings.ReplaceAll(text, was, was[:strings.LastIndexAny(was[:len(was)-1], " :")+1]+said+" ")
	}
	m.foreign(m.rand.IntN(4))
	m.sweep(m.rand.IntN(4))
	between := m.may()
	for i, line := range strings.SplitAfter(text, "\n") {
		if i > 0 && between && slices.ContainsFunc(form.Head, func(head string) bool { return strings.HasPrefix(line, head) }) && m.rand.IntN(4) == 0 {
			m.foreign(m.rand.IntN(2))
			m.sweep(m.rand.IntN(2))
		}
		m.out.WriteString(line)
	}
	m.sweep(m.rand.IntN(2))
	m.foreign(m.rand.IntN(3))
	m.t.Data = m.ends()
	return &m.t, nil
}

// markLIDs takes the LIDs of some end ports. The fabric that it returns has others in their
// place, which no port has and which stand nowhere else in a text: what the text is to say
// takes theirs.
func (m *maker) markLIDs(bad []string) (*fabric.Fabric, error) {
	f := m.f
	base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	marked := slices.Clone(base)
	mark := fabric.MaxUnicastLID
	for p := range fabric.PortID(f.NumPorts()) {
		base[p], lmc[p] = f.LID(p), f.LMC(p)
		marked[p] = base[p]
		if base[p] != 0 && m.rand.IntN(8) == 0 && mark > f.MaxLID() {
			m.said[p] = pick(m.rand, bad...)
			base[p], marked[p], lmc[p] = 0, mark, 0
			mark--
		}
	}
	g, err := f.WithLIDs(base, lmc)
	if err != nil {
		return nil, err
	}
	m.t.Fabric = g
	return f.WithLIDs(marked, slices.Clone(lmc))
}
