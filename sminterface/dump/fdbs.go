package dump

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
)

// dumpRoutes is in the first line of every section of fdbs
// files. Before 2008, OpenSM put the name of a function in
// front of it, and ibdiagnet still does.
const dumpRoutes = "dump_ucast_routes: Switch "

// fdbsHeader returns the offset of the GUID in the first
// line of a section of an fdbs file, 0 for any other line.
func fdbsHeader(line []byte) int {
	s := topology.Line{Text: line}
	s.Skip("__")
	s.Skip("osm_ucast_mgr_")
	if !s.Skip(dumpRoutes) {
		return 0
	}
	return s.At
}

// readFDBsHead reads the first line of a section of an fdbs file.
// It marks sections of private tables other than 0 as skipped.
func (r *lftReader) readFDBsHead(sec *section, line []byte) (fabric.GUID, error) {
	s := topology.Line{Text: bytes.TrimRight(line[fdbsHeader(line):], " \t")}
	guid := s.GUID()
	if !s.AtEnd() {
		return 0, fmt.Errorf("bad GUID; want %s0x0123456789abcdef", dumpRoutes)
	}
	// Only OpenSM writes equally many rows for each switch.
	sec.even = !bytes.HasPrefix(line, []byte("osm_"))
	sec.high = -1
	second, _ := cutLine(r.data[:sec.end], sec.body)
	if number, ok := parsePLFT(second); ok && number > 0 {
		sec.plft, sec.plfts = sec.body+1, 1<<min(number, 63)
		sec.skip = true
	}
	return guid, nil
}

// parsePLFT reads a line with the number of the private table that follows.
func parsePLFT(line []byte) (number int, ok bool) {
	s := topology.Line{Text: line}
	s.Want(plftNumber)
	s = topology.Line{Text: bytes.TrimSpace(s.Rest()), Bad: s.Bad}
	number = s.Decimal(3)
	return number, s.AtEnd()
}

const plftNumber = "PLFT_NUM:"

// readFDBsLine reads any line of an fdbs file, from offset
// at, and returns the offset of the next one.
func (r *lftReader) readFDBsLine(sec *section, at int) int {
	line, next := cutLine(r.data[:sec.end], at)
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0, line[0] == '#', bytes.HasPrefix(line, []byte("LID ")) && bytes.HasSuffix(line, []byte(" Optimal")):
	case beginsWith(line, plftNumber):
		number, ok := parsePLFT(line)
		if !ok {
			sec.drop(at, "bad number of a private table; want PLFT_NUM: 0")
			break
		}
		sec.plft = cmp.Or(sec.plft, at+1)
		sec.plfts |= 1 << min(number, 63)
		sec.private = number > 0
	case sec.private:
	default:
		lid, port, ok := parseFDBsRow(line)
		if !ok {
			sec.drop(at, "want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE")
			break
		}
		sec.rows++
		r.addEntry(sec, lid, port, at)
	}
	return next
}

// parseFDBsRow reads a row of an fdbs file. An unreachable LID has port NoPath.
func parseFDBsRow(line []byte) (lid uint64, port int, ok bool) {
	s := topology.Line{Text: line}
	lid = s.Hex0x(8)
	s.Want(" ")
	s.SkipBlanks()
	s.Want(":")
	s.SkipBlanks()
	if s.Skip("UNREACHABLE") {
		return lid, int(fabric.NoPath), s.AtEnd()
	}
	port = s.Decimal(9)
	if s.Bad || s.Done() || !s.Is(' ') && !s.Is(':') {
		return 0, 0, false
	}
	for _, end := range []string{"yes", "!", "HOPS UNKNOWN"} { // a last line that is cut short lacks these
		ok = ok || bytes.HasSuffix(line, []byte(end))
	}
	return lid, port, ok
}

// WriteFDBs writes opensm.fdbs as osm_dump.c does after opensm has
// loaded what WriteLFTs and WriteLIDMatrix write for these tables. Hops
// is the lid matrix's hop count through the entry's port to the switch
// with the LID. For the LID of a CA or router it is the count to the
// switch at its cable, plus 1. Optimal is yes if no port has fewer, else
// the row names a better port. HOPS UNKNOWN means that the matrix has no
// path through the port. Options are as for WriteLFTs; Lean changes nothing.
func WriteFDBs(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return err
	}
	h := NewHops(f, t)
	lids := newLIDTargets(f, t.MaxLID())
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte { return appendFDBs(b, h, t, lids, s) })
}

// lidTarget has what fdbs files need of a LID.
type lidTarget struct {
	hex      string        // its digits
	owned    bool          // a port has it
	isSwitch bool          // the port is the port 0 of a switch
	sw       fabric.NodeID // that switch, or the one that the port is cabled to; NoNode for none
}

func newLIDTargets(f *fabric.Fabric, maxLID fabric.LID) []lidTarget {
	list := make([]lidTarget, int(maxLID)+1)
	for l := range list {
		t := &list[l]
		p := f.LIDPort(fabric.LID(l))
		t.hex, t.sw, t.owned = fmt.Sprintf("0x%04X", l), fabric.NoNode, p != fabric.NoPort
		t.isSwitch = t.owned && f.IsSwitch(f.Owner(p))
		if at := f.Attachment(p); at != fabric.NoPort {
			t.sw = f.Owner(at)
		}
	}
	return list
}

// appendFDBs appends the section of switch s.
func appendFDBs(b []byte, h *Hops, t *lft.Tables, lids []lidTarget, s fabric.NodeID) []byte {
	least, ports := h.least(s), h.f.Node(s).NumPorts
	var paths []int // number of entries by port; nil until needed
	b = fmt.Appendf(b, "%s%s\nLID    : Port : Hops : Optimal\n", dumpRoutes, h.f.Node(s).GUID)
	for l, port := range t.Row(s) {
		if l == 0 {
			continue
		}
		target := &lids[l]
		b = append(b, target.hex...)
		if !target.owned || port == fabric.NoPath {
			b = append(b, " : UNREACHABLE\n"...)
			continue
		}
		hops, best := noHops, noHops
		switch {
		case target.sw == fabric.NoNode:
		case target.sw == s && !target.isSwitch:
			hops, best = 0, 0
		default:
			best = least[target.sw]
			if port == fabric.ManagementPort {
				hops = best
			} else if port <= ports {
				if u := h.f.PeerSwitch(h.f.Port(s, port)); u != s { // a cable to itself is no path
					hops = h.via(u, target.sw)
				}
			}
		}
		b = append(b, " : "...)
		b = append(b, digits3[port][:]...)
		if hops == noHops {
			b = append(b, "  : HOPS UNKNOWN\n"...)
			continue
		}
		if !target.isSwitch {
			hops++
			best++
		}
		b = append(b, "  : "...)
		if hops < 10 {
			b = append(b, '0')
		}
		b = strconv.AppendUint(b, uint64(hops), 10)
		if hops == best {
			b = append(b, "   : yes\n"...)
			continue
		}
		if paths == nil {
			paths = countPaths(t.Row(s), int(ports)+1)
		}
		b = fmt.Appendf(b, "   : No %d hop path possible via port %d!\n", best, h.recommend(s, target.sw, paths))
	}
	return b
}

// countPaths counts the entries that lead to each port, as OpenSM does when it
// loads tables (osm_ucast_file.c, add_path).
func countPaths(row []fabric.PortNum, ports int) []int {
	counts := make([]int, ports)
	for _, p := range row {
		if int(p) < ports {
			counts[p]++
		}
	}
	return counts
}

// recommend returns the port that OpenSM would have taken: among those with the
// least hop count the one with the fewest entries (osm_switch_recommend_path).
func (h *Hops) recommend(s, target fabric.NodeID, paths []int) fabric.PortNum {
	if s == target {
		return fabric.ManagementPort
	}
	hops := make([]uint8, len(paths))
	h.Row(s, target, hops)
	best := fabric.NoPath
	for p, d := range hops {
		if p > 0 && d == hops[0] && (best == fabric.NoPath || paths[p] < paths[best]) {
			best = fabric.PortNum(p)
		}
	}
	return best
}
