package fabric

import (
	"fmt"
	"strconv"

	"github.com/ibweave/ibweave/internal/text"
)

// Label is the label printed on the cage of a port, as ibdiagnet gives it: "1/12/2" is ASIC,
// cage and port of a Quantum-2 switch, "B184D0F0/0/0/1" bus, device and function of an
// HCA. It is "" if the source has no label. Labels are for people: comparisons of fabrics
// ignore them.
func (f *Fabric) Label(p PortID) string { return f.labels[p] }

// Labelled returns true if any port has a label.
func (f *Fabric) Labelled() bool { return len(f.labels) > 0 }

// PortLabels has the labels of a node's ports by port number, for ports that have one.
type PortLabels map[PortNum]string

// PortLabels returns the labels of a node's ports, nil if there are none.
func (f *Fabric) PortLabels(n NodeID) PortLabels {
	var list PortLabels
	for num := range f.nodes[n].NumPorts + 1 {
		if label := f.Label(f.Port(n, num)); label != "" {
			if list == nil {
				list = PortLabels{}
			}
			list[num] = label
		}
	}
	return list
}

// Text names a port of a node that is named already: 3, or 3(1/2/1) with its label.
func (l PortLabels) Text(p PortNum) string { return portText(p, l[p]) }

func portText(p PortNum, label string) string {
	if label == "" {
		return strconv.Itoa(int(p))
	}
	return strconv.Itoa(int(p)) + "(" + label + ")"
}

// Texts returns Text for each of the ports.
func (l PortLabels) Texts(ports []int) []string {
	return text.Each(ports, func(p int) string { return l.Text(PortNum(p)) })
}

// SetLabel sets the label of a port; "" removes it.
func (b *Builder) SetLabel(node int, p PortNum, label string) error {
	at, err := b.slot(node, p)
	if err != nil {
		return err
	}
	switch {
	case len(label) > maxLabel:
		return fmt.Errorf("label of %d bytes, want at most %d", len(label), maxLabel)
	case label == "":
		delete(b.labels, at)
		return nil
	case b.labels == nil:
		b.labels = make(map[PortID]string)
	}
	b.labels[at] = label
	return nil
}

// maxLabel bounds a label in bytes. Real ones have at most 20.
const maxLabel = 64
