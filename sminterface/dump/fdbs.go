package dump

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// dumpRoutes is in the first line of every section of fdbs files. OpenSM
// prints it bare; before 2008 it, and ibdiagnet to this day, has the name of
// the function that once printed it in front.
var dumpRoutes = []byte("dump_ucast_routes: Switch ")

// fdbsHeader says where the GUID is in the first line of a section of an fdbs
// file, 0 for another line.
func fdbsHeader(line []byte) int {
	rest := bytes.TrimPrefix(line, []byte("__"))
	rest = bytes.TrimPrefix(rest, []byte("osm_ucast_mgr_"))
	if !bytes.HasPrefix(rest, dumpRoutes) {
		return 0
	}
	return len(line) - len(rest) + len(dumpRoutes)
}

var (
	plftNumber  = []byte("PLFT_NUM:")
	unreachable = []byte("UNREACHABLE")
	hopsUnknown = []byte("HOPS UNKNOWN")
)

// fdbsHeader reads the first line of a section of an fdbs file. A section
// that is of another private table than 0 is not to be read.
func (r *tableReader) fdbsHeader(sec *section, line []byte) (fabric.GUID, error) {
	rest := bytes.TrimRight(line[fdbsHeader(line):], " \t")
	v, n := hex0x(rest, 16)
	if n == 0 || n != len(rest) {
		return 0, fmt.Errorf("bad GUID; want %s0x0123456789abcdef", dumpRoutes)
	}
	// Only OpenSM has as many rows for each switch.
	sec.even = !bytes.HasPrefix(line, []byte("osm_"))
	second, _ := cutLine(r.src.data[:sec.end], sec.body)
	if number, ok := parsePLFT(second); ok && number > 0 {
		sec.plft = sec.body + 1
		sec.skip = true
	}
	return fabric.GUID(v), nil
}

// parsePLFT reads a line that says which of a switch's private tables follows.
func parsePLFT(line []byte) (number int, ok bool) {
	if !bytes.HasPrefix(line, plftNumber) {
		return 0, false
	}
	rest := bytes.TrimSpace(line[len(plftNumber):])
	v, n := decPrefix(rest, 3)
	return int(v), n > 0 && n == len(rest)
}

// fdbsSection reads the rows of a section of an fdbs file. The hop counts are
// not kept.
func (r *tableReader) fdbsSection(st *rowState, sec *section) {
	d := r.src.data[:sec.end]
	row := r.tables.Row(sec.sw)
	ports := r.f.Node(sec.sw).NumPorts
	private := false // in a private table other than 0
	i := sec.body
	for i < len(d) && !sec.failed {
		// 0x0001 : 005  : 01   : yes
		const length = len("0x0001 : 005  : 01   : yes\n")
		if len(d)-i < length || d[i] != '0' || d[i+1] != 'x' || string(d[i+6:i+9]) != " : " ||
			string(d[i+12:i+16]) != "  : " || string(d[i+18:i+length]) != "   : yes\n" || private {
			i = r.oddFDBsLine(st, sec, row, i, &private)
			continue
		}
		h3, h2, h1, h0 := hexDigit[d[i+2]], hexDigit[d[i+3]], hexDigit[d[i+4]], hexDigit[d[i+5]]
		p2, p1, p0 := d[i+9]-'0', d[i+10]-'0', d[i+11]-'0'
		lid := int(h3)<<12 | int(h2)<<8 | int(h1)<<4 | int(h0)
		port := int(p2)*100 + int(p1)*10 + int(p0)
		if h3|h2|h1|h0 > 15 || p2 > 9 || p1 > 9 || p0 > 9 || lid <= st.last || lid >= len(row) || port > int(ports) {
			i = r.oddFDBsLine(st, sec, row, i, &private)
			continue
		}
		row[lid] = fabric.PortNum(port)
		st.last = lid
		st.rows++
		i += length
	}
}

// oddFDBsLine reads the line at i, whatever it is, and returns where the next
// one starts.
func (r *tableReader) oddFDBsLine(st *rowState, sec *section, row []fabric.PortNum, i int, private *bool) int {
	line, next := cutLine(r.src.data[:sec.end], i)
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 || trimmed[0] == '#' ||
		bytes.HasPrefix(trimmed, []byte("LID ")) && bytes.HasSuffix(trimmed, []byte(" Optimal")) {
		return next
	}
	if bytes.HasPrefix(trimmed, plftNumber) {
		number, ok := parsePLFT(trimmed)
		if !ok {
			r.drop(sec, i, "bad number of a private table; want PLFT_NUM: 0")
			return next
		}
		if sec.plft == 0 {
			sec.plft = i + 1
		}
		*private = number > 0
		return next
	}
	if *private {
		return next
	}
	const want = "want a row such as 0x0001 : 002  : 01   : yes, or 0x0001 : UNREACHABLE"
	lid, n := hex0x(trimmed, 8)
	if n == 0 || n == len(trimmed) || trimmed[n] != ' ' {
		r.drop(sec, i, want)
		return next
	}
	at := skipBlanks(trimmed, n)
	if at == len(trimmed) || trimmed[at] != ':' {
		r.drop(sec, i, want)
		return next
	}
	at = skipBlanks(trimmed, at+1)
	rest := trimmed[at:]
	port := uint64(fabric.NoPath)
	if !bytes.Equal(rest, unreachable) {
		var m int
		port, m = decPrefix(rest, 9)
		// The last line of a file that is cut short has no such end.
		if m == 0 || !bytes.HasSuffix(rest, []byte("yes")) && !bytes.HasSuffix(rest, []byte("!")) &&
			!bytes.HasSuffix(rest, hopsUnknown) || rest[m] != ' ' && rest[m] != ':' {
			r.drop(sec, i, want)
			return next
		}
	}
	st.rows++
	r.put(st, sec, row, int(lid), int(port), i)
	return next
}

// WriteFDBs writes opensm.fdbs, as osm_dump.c does after opensm has loaded
// what WriteLFTs and WriteLIDMatrix write for these tables. Hops and Optimal
// follow that lid matrix: Hops is the hop count by way of the entry's port to
// the switch that has the LID, or to which its owner is attached, and then one
// more; Optimal is yes when that is the least hop count, else it names another
// port. HOPS UNKNOWN means that the matrix has no path that way. Options are
// as for WriteLFTs; Lean changes nothing.
func WriteFDBs(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := checkTables(f, t); err != nil {
		return err
	}
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	h := newHopCounts(f, t)
	lids := newLIDTargets(f, t.MaxLID())
	scratch := make([][]uint8, workers(len(list)))
	return writeInOrder(w, len(list), func(worker, i int, b []byte) []byte {
		if scratch[worker] == nil {
			scratch[worker] = make([]uint8, h.n)
		}
		return appendFDBs(b, h, t, lids, list[i], scratch[worker])
	})
}

// lidTarget is what fdbs need to know of a LID.
type lidTarget struct {
	hex      [4]byte       // its digits
	owned    bool          // some port has it
	isSwitch bool          // that port is the port 0 of a switch
	sw       fabric.NodeID // that switch, or the one to which the port is attached; NoNode for none
}

func newLIDTargets(f *fabric.Fabric, maxLID fabric.LID) []lidTarget {
	list := make([]lidTarget, int(maxLID)+1)
	for l := range list {
		t := &list[l]
		appendHex(t.hex[:0], uint64(l), 4, hexUpper)
		t.sw = fabric.NoNode
		p := f.LIDPort(fabric.LID(l))
		if p == fabric.NoPort {
			continue
		}
		t.owned = true
		n := f.Owner(p)
		if t.isSwitch = f.IsSwitch(n); !t.isSwitch {
			peer := f.Peer(p)
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
				continue
			}
			n = f.Owner(peer)
		}
		t.sw = n
	}
	return list
}

// appendFDBs appends the section of switch s; least is room for the least hop
// counts.
func appendFDBs(b []byte, h *hopCounts, t *lft.Tables, lids []lidTarget, s fabric.NodeID, least []uint8) []byte {
	h.least(s, least)
	neighbours := h.neighbours(s)
	var paths []int // by port, counted when needed
	b = append(b, dumpRoutes...)
	b = h.f.Node(s).GUID.Append(b)
	b = append(b, "\nLID    : Port : Hops : Optimal\n"...)
	for l, port := range t.Row(s) {
		if l == 0 {
			continue
		}
		target := &lids[l]
		b = append(b, "0x"...)
		b = append(b, target.hex[:]...)
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
			} else if int(port) < len(neighbours) && neighbours[port] != fabric.NoNode {
				hops = via(h.dist[int(neighbours[port])*h.n+int(target.sw)])
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
		b = appendDecimal(b, int(hops))
		if hops == best {
			b = append(b, "   : yes\n"...)
			continue
		}
		b = append(b, "   : No "...)
		b = appendDecimal(b, int(best))
		b = append(b, " hop path possible via port "...)
		if paths == nil {
			paths = pathCounts(t.Row(s), len(neighbours))
		}
		b = appendDecimal(b, int(h.recommend(s, target.sw, least[target.sw], paths)))
		b = append(b, "!\n"...)
	}
	return b
}

// pathCounts counts the entries that lead to each port, as OpenSM does when it
// loads tables (osm_ucast_file.c, add_path).
func pathCounts(row []fabric.PortNum, ports int) []int {
	counts := make([]int, ports)
	for _, p := range row {
		if int(p) < ports {
			counts[p]++
		}
	}
	return counts
}

// recommend is the port that OpenSM would have taken: of those with the least
// hop count the one with the fewest entries (osm_switch_recommend_path).
func (h *hopCounts) recommend(s, target fabric.NodeID, least uint8, paths []int) fabric.PortNum {
	if s == target {
		return fabric.ManagementPort
	}
	best := fabric.NoPath
	for p, u := range h.neighbours(s) {
		if u == fabric.NoNode || via(h.dist[int(u)*h.n+int(target)]) != least {
			continue
		}
		if best == fabric.NoPath || paths[p] < paths[best] {
			best = fabric.PortNum(p)
		}
	}
	return best
}
