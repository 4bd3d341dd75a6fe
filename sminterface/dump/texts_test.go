package dump

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// ibRouteText prints as ibroute of infiniband-diags 44 does, one switch after the other and
// each addressed by its LID; brief is its option -n. No switches stand for all. Unlike
// ibroute it does not lose the last row when the highest LID is a multiple of 64.
func ibRouteText(f *fabric.Fabric, t *lft.Tables, brief bool, switches ...fabric.NodeID) []byte {
	var b []byte
	if len(switches) == 0 {
		for s := range fabric.NodeID(f.NumSwitches()) {
			switches = append(switches, s)
		}
	}
	for _, s := range switches {
		node := f.Node(s)
		b = fmt.Appendf(b, "Unicast lids [0x0-%#x] of switch Lid %d guid %s (%s):\n  Lid  Out   Destination\n       Port     Info \n",
			t.MaxLID(), f.LID(f.PortBase(s)), node.GUID, printed(node.Description))
		rows := 0
		told := fabric.NoPort // the port whose owner the rows have told
		for l, p := range t.Row(s) {
			if p > node.NumPorts {
				continue
			}
			rows++
			owner := f.LIDPort(fabric.LID(l))
			b = fmt.Appendf(b, "0x%04x %03d", l, p)
			switch {
			case brief:
				b = append(b, " \n"...)
			case owner == fabric.NoPort:
				b = append(b, " : (unknown node and type)\n"...)
			case owner == told: // ibroute asks only for the first LID of a port
				b = fmt.Appendf(b, " : (path #%d out of %d: portguid %s)\n", l-int(f.LID(owner))+1, 1<<f.LMC(owner), f.PortGUID(owner))
			default:
				n := f.Node(f.Owner(owner))
				b = fmt.Appendf(b, " : (%s portguid %s: '%s')\n", n.Type, f.PortGUID(owner), printed(n.Description))
			}
			told = owner
		}
		b = fmt.Appendf(b, "%d valid lids dumped \n", rows)
	}
	return b
}

// printed is a node description as the tools print it: 63 bytes, with blanks for what
// is not printable.
func printed(description string) string {
	description, _, _ = strings.Cut(description[:min(len(description), 63)], "\x00")
	b := []byte(description)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = ' '
		}
	}
	return string(b)
}

// smpQueryText prints as smpquery sl2vl LID PORT does (infiniband-diags, smpquery.c)
// for ports: of port 0 of a switch, what it prints for each port with a cable. No ports
// stand for all end ports. It leaves out what has no LID.
func smpQueryText(s *lft.SL2VL, ports ...fabric.PortID) []byte {
	f := s.Fabric()
	var b []byte
	if len(ports) == 0 {
		f.EndPorts(func(p fabric.PortID) { ports = append(ports, p) })
	}
	for _, p := range ports {
		if f.LID(p) == 0 {
			continue
		}
		head := fmt.Sprintf("# SL2VL table: Lid %d\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n", f.LID(p))
		row := func(in, out fabric.PortNum, m *lft.VLMap) {
			b = fmt.Appendf(b, "ports: in %2d, out %2d: |", in, out)
			for _, v := range m {
				b = fmt.Appendf(b, "%2d|", v)
			}
			b = append(b, '\n')
		}
		n := f.Owner(p)
		if !f.IsSwitch(n) {
			b = append(b, head...)
			row(0, 0, s.At(0, p))
			continue
		}
		for out := fabric.PortNum(1); out <= f.Node(n).NumPorts; out++ {
			if f.Peer(f.Port(n, out)) == fabric.NoPort {
				continue
			}
			b = append(b, head...)
			for in := fabric.PortNum(0); in <= f.Node(n).NumPorts; in++ {
				row(in, out, s.At(in, f.Port(n, out)))
			}
		}
	}
	return b
}

// readLIDMatrix reads opensm-lid-matrix.dump: the hop counts by switch, LID and
// port, 255 for no path, with the least of a row for port 0. An error is a line that is
// nothing of the form.
func readLIDMatrix(text []byte) (map[fabric.GUID]map[fabric.LID][]uint8, error) {
	matrix := make(map[fabric.GUID]map[fabric.LID][]uint8)
	var rows map[fabric.LID][]uint8
	for line := range strings.Lines(string(text)) {
		if digits, ok := strings.CutPrefix(line, "Switch: guid "); ok {
			guid, err := fabric.ParseGUID(strings.TrimSpace(digits))
			if err != nil {
				return nil, err
			}
			rows = make(map[fabric.LID][]uint8)
			matrix[guid] = rows
			continue
		}
		var lid fabric.LID
		row, _, _ := strings.Cut(line, "#")
		digits, columns, _ := strings.Cut(row, ":")
		if _, err := fmt.Sscanf(digits, "0x%04x", &lid); err != nil || rows == nil || rows[lid] != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		hops, err := hex.DecodeString(strings.Join(strings.Fields(columns), ""))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		rows[lid] = hops
	}
	return matrix, nil
}
