package dump

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// descriptionLen is the number of bytes of a node description that OpenSM and
// infiniband-diags print: the attribute has 64, and they end it at the 64th.
const descriptionLen = 63

// appendDescription appends a node description as OpenSM and
// infiniband-diags print it: bytes outside of printable ASCII become blanks.
func appendDescription(b []byte, description string) []byte {
	description = description[:min(len(description), descriptionLen)]
	if i := strings.IndexByte(description, 0); i >= 0 {
		description = description[:i]
	}
	return appendPrintable(b, description)
}

// appendPrintable appends s with blanks for what is not printable ASCII.
func appendPrintable(b []byte, s string) []byte {
	from := len(b)
	b = append(b, s...)
	for i, c := range b[from:] {
		if c < ' ' || c > '~' {
			b[from+i] = ' '
		}
	}
	return b
}

// The digits of hexadecimal numbers, for appendHex.
const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// appendHex appends v with at least width digits. It is for texts with many numbers,
// where package fmt would take most of the time.
func appendHex(b []byte, v uint64, width int, digits string) []byte {
	for v>>(4*width) > 0 {
		width++
	}
	for ; width > 0; width-- {
		b = append(b, digits[v>>(4*(width-1))&15])
	}
	return b
}

// compareGUIDs compares GUIDs in the order of OpenSM's dumps.
func compareGUIDs(g, h fabric.GUID) int {
	return cmp.Compare(bits.ReverseBytes64(uint64(g)), bits.ReverseBytes64(uint64(h)))
}

// inOpenSMOrder sorts nodes as in OpenSM's dumps.
func inOpenSMOrder(f *fabric.Fabric, nodes []fabric.NodeID) {
	slices.SortFunc(nodes, func(m, n fabric.NodeID) int { return compareGUIDs(f.Node(m).GUID, f.Node(n).GUID) })
}

// switchesToWrite returns the switches in only, nil for all, in OpenSM's order.
func switchesToWrite(f *fabric.Fabric, only []fabric.NodeID) ([]fabric.NodeID, error) {
	var list []fabric.NodeID
	if only == nil {
		list = f.Switches()
	} else {
		for _, s := range only {
			if s < 0 || int(s) >= f.NumSwitches() {
				return nil, fmt.Errorf("node %d is not one of the %d switches", s, f.NumSwitches())
			}
		}
		list = slices.Clone(only)
		slices.Sort(list)
		list = slices.Compact(list)
	}
	inOpenSMOrder(f, list)
	return list, nil
}

// writeInOrder formats pieces 0 to n-1 on all CPUs and writes them in
// order. format appends piece i to b and returns the result. Only a
// few pieces per CPU are in memory. It stops at the first error of w.
func writeInOrder(w io.Writer, n int, format func(i int, b []byte) []byte) error {
	buffers := make([][]byte, 2*runtime.GOMAXPROCS(0))
	return par.Pipeline(context.Background(), n, len(buffers), func(slot, i int) error {
		buffers[slot] = format(i, buffers[slot][:0])
		return nil
	}, func(slot, _ int) error {
		_, err := w.Write(buffers[slot])
		return err
	}, func(_, _ int) error { return nil })
}

// writeSwitches writes a section for each switch in only, nil for all.
func writeSwitches(w io.Writer, f *fabric.Fabric, only []fabric.NodeID, format func(b []byte, s fabric.NodeID) []byte) error {
	list, err := switchesToWrite(f, only)
	if err != nil {
		return err
	}
	return writeInOrder(w, len(list), func(i int, b []byte) []byte { return format(b, list[i]) })
}

// writeBatches writes the parts of a list in order, in batches since the parts are small.
func writeBatches[T any](w io.Writer, list []T, format func(b []byte, one T) []byte) error {
	const batch = 64
	return writeInOrder(w, (len(list)+batch-1)/batch, func(i int, b []byte) []byte {
		for _, one := range list[i*batch : min((i+1)*batch, len(list))] {
			b = format(b, one)
		}
		return b
	})
}
