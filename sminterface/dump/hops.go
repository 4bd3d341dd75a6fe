package dump

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// noHops is OSM_NO_PATH, as OpenSM's hop counts have it.
const noHops = fabric.Unreachable

// hopCounts is the lid matrix that tables imply. OpenSM counts links between
// switches, from switch to switch; the links of end ports do not count.
//
// The hop count of a switch to a target by one of its ports is one more than
// the length of the path that the tables give from the neighbour on that port
// to the target's base LID, and the least hop count is the least of these; of
// a switch to itself it is 0.
type hopCounts struct {
	f    *fabric.Fabric
	n    int             // switches
	dist []uint8         // by source, then target: length of the tables' path
	to   []fabric.NodeID // by PortID of a switch: the switch at the other end, or NoNode
}

// newHopCounts walks all paths between switches: O(switches^2), on all CPUs.
func newHopCounts(f *fabric.Fabric, t *lft.Tables) *hopCounts {
	n := f.NumSwitches()
	h := &hopCounts{f: f, n: n, dist: make([]uint8, n*n)}
	if n == 0 {
		return h
	}
	h.to = make([]fabric.NodeID, f.PortBase(fabric.NodeID(n-1))+fabric.PortID(f.Node(fabric.NodeID(n-1)).NumPorts)+1)
	for p := range h.to {
		h.to[p] = fabric.NoNode
	}
	for s := range n {
		ports, to := f.SwitchLinks(fabric.NodeID(s))
		for i, p := range ports {
			h.to[p] = to[i]
		}
	}
	// A batch of targets reads each table once, and writes whole cache lines.
	const batch = 64
	batches := (n + batch - 1) / batch
	type scratch struct {
		next []fabric.NodeID // by target of the batch, then switch
		path []fabric.NodeID
		hops []int16 // by switch
	}
	workspace := make([]scratch, workers(batches))
	forEach(batches, func(w, i int) {
		ws := &workspace[w]
		if ws.next == nil {
			ws.next = make([]fabric.NodeID, batch*n)
			ws.hops = make([]int16, n)
		}
		t0 := i * batch
		t1 := min(t0+batch, n)
		for s := range n {
			row := t.Row(fabric.NodeID(s))
			base := f.PortBase(fabric.NodeID(s))
			ports := f.Node(fabric.NodeID(s)).NumPorts
			for k := t0; k < t1; k++ {
				next := fabric.NoNode
				if l := int(f.LID(f.PortBase(fabric.NodeID(k)))); l > 0 && l < len(row) && row[l] > 0 && row[l] <= ports {
					next = h.to[base+fabric.PortID(row[l])]
				}
				ws.next[(k-t0)*n+s] = next
			}
		}
		for k := t0; k < t1; k++ {
			next := ws.next[(k-t0)*n : (k-t0+1)*n]
			walkAll(next, fabric.NodeID(k), ws.hops, &ws.path)
			for s, d := range ws.hops {
				h.dist[s*n+k] = uint8(d)
			}
		}
	})
	return h
}

// walkAll computes how far every switch is from target t when a packet at s
// goes on to next[s]: noHops when it never arrives, at most noHops-1.
func walkAll(next []fabric.NodeID, t fabric.NodeID, hops []int16, path *[]fabric.NodeID) {
	const unknown, onPath = -1, -2
	for s := range hops {
		hops[s] = unknown
	}
	hops[t] = 0
	for s := range hops {
		at := fabric.NodeID(s)
		*path = (*path)[:0]
		for at != fabric.NoNode && hops[at] == unknown {
			hops[at] = onPath
			*path = append(*path, at)
			at = next[at]
		}
		d := int16(noHops)
		if at != fabric.NoNode && hops[at] != onPath {
			d = hops[at]
		}
		for _, s := range slices.Backward(*path) {
			if d < int16(noHops)-1 {
				d++
			}
			hops[s] = d
		}
	}
}

// row is the tables' distance of switch s to all others.
func (h *hopCounts) row(s fabric.NodeID) []uint8 { return h.dist[int(s)*h.n : (int(s)+1)*h.n] }

// via is the hop count by way of a port whose neighbour is d away.
func via(d uint8) uint8 {
	if d >= noHops-1 {
		return noHops
	}
	return d + 1
}

// least fills in the least hop counts of switch s to all switches.
func (h *hopCounts) least(s fabric.NodeID, least []uint8) {
	for i := range least {
		least[i] = noHops
	}
	_, to := h.f.SwitchLinks(s)
	for _, u := range to {
		for t, d := range h.row(u) {
			least[t] = min(least[t], via(d))
		}
	}
	least[s] = 0
}

// neighbours lists the switches at the ports 0 to NumPorts of switch s,
// NoNode where there is none.
func (h *hopCounts) neighbours(s fabric.NodeID) []fabric.NodeID {
	base := h.f.PortBase(s)
	return h.to[base : base+fabric.PortID(h.f.Node(s).NumPorts)+1]
}

// WriteLIDMatrix writes opensm-lid-matrix.dump, as osm_dump.c does, for
// opensm -R file -M. The hop counts are those that the tables imply: by a port
// to a switch, one more than the length of the tables' path from the neighbour
// on that port to that switch. Column 0 is the least of a row, as OpenSM has
// it when it has loaded the file. Rows are for the base LIDs of switches;
// there is none where no port leads to the switch. For tables of shortest
// paths this is what OpenSM computes itself. Errors are as for WriteLFTs.
func WriteLIDMatrix(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := checkTables(f, t); err != nil {
		return err
	}
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	h := newHopCounts(f, t)
	// The targets in the order of their LIDs, with the two ends of their rows.
	const end = len(" # portguid 0x0123456789abcdef\n")
	var targets []fabric.NodeID
	for s := range fabric.NodeID(h.n) {
		if f.LID(f.PortBase(s)) > 0 {
			targets = append(targets, s)
		}
	}
	slices.SortFunc(targets, func(a, b fabric.NodeID) int { return int(f.LID(f.PortBase(a))) - int(f.LID(f.PortBase(b))) })
	var ends []byte
	for _, t := range targets {
		ends = append(ends, " # portguid "...)
		ends = f.PortGUID(f.PortBase(t)).Append(ends)
		ends = append(ends, '\n')
	}
	scratch := make([][]uint8, workers(len(list)))
	return writeInOrder(w, len(list), func(worker, i int, b []byte) []byte {
		if scratch[worker] == nil {
			scratch[worker] = make([]uint8, h.n)
		}
		s, least := list[i], scratch[worker]
		h.least(s, least)
		neighbours := h.neighbours(s)
		b = append(b, "Switch: guid "...)
		b = f.Node(s).GUID.Append(b)
		b = append(b, '\n')
		b = slices.Grow(b, len(targets)*(len("0x0001:")+3*len(neighbours)+end))
		for j, t := range targets {
			if least[t] == noHops {
				continue
			}
			b = append(b, "0x"...)
			b = appendHex4(b, f.LID(f.PortBase(t)))
			b = append(b, ':')
			b = append(b, hexHops[least[t]][:]...)
			for _, u := range neighbours[1:] {
				hops := noHops
				if u != fabric.NoNode {
					hops = via(h.dist[int(u)*h.n+int(t)])
				}
				b = append(b, hexHops[hops][:]...)
			}
			if opt.Lean {
				b = append(b, '\n')
			} else {
				b = append(b, ends[j*end:(j+1)*end]...)
			}
		}
		return b
	})
}

// hexHops holds the column of every hop count.
var hexHops = func() (t [256][3]byte) {
	for i := range t {
		t[i] = [3]byte{' ', hexLower[i>>4], hexLower[i&15]}
	}
	return t
}()

// HopTable holds the hop counts of an opensm-lid-matrix.dump. It is immutable.
type HopTable struct {
	switches []hopRows
}

// hopRows are the rows of a switch, sorted by LID.
type hopRows struct {
	lids    []fabric.LID
	columns int // ports, with port 0
	hops    []uint8
}

// LIDs lists the LIDs that switch s has hop counts for, in order; not to be
// changed.
func (h *HopTable) LIDs(s fabric.NodeID) []fabric.LID { return h.switches[s].lids }

// Row gives the hop counts from switch s to LID l by port, 255 for no path,
// and the least of them in place of port 0; nil when the dump has none. Not to
// be changed.
func (h *HopTable) Row(s fabric.NodeID, l fabric.LID) []uint8 {
	r := &h.switches[s]
	i, ok := slices.BinarySearch(r.lids, l)
	if !ok {
		return nil
	}
	return r.hops[i*r.columns : (i+1)*r.columns]
}

// switchGUID begins the sections of opensm-lid-matrix.dump.
var switchGUID = []byte("Switch: guid 0x")

// ReadLIDMatrix reads opensm-lid-matrix.dump. Matching, Problems and errors
// are those of ReadLFTs; rows must have a column for each port of the switch.
// A switch without a section has no hop counts.
func ReadLIDMatrix(name string, data []byte, f *fabric.Fabric, opt Options) (*HopTable, []Problem, error) {
	r := &tableReader{src: source{name, data}, f: f, opt: opt, maxLID: fabric.MaxUnicastLID}
	if form := Recognize(data); form != LIDMatrix {
		return nil, nil, r.notForm(form, "hop counts", "opensm-lid-matrix.dump")
	}
	faults := r.preamble(r.split(switchGUID))
	r.headers(func(_ *section, line []byte) (fabric.GUID, error) {
		rest := bytes.TrimRight(line[len(switchGUID):], " \t")
		v, n := hexPrefix(rest, 16)
		if n == 0 || n != len(rest) {
			return 0, fmt.Errorf("bad GUID; want %s0123456789abcdef", switchGUID)
		}
		return fabric.GUID(v), nil
	})
	h := &HopTable{switches: make([]hopRows, f.NumSwitches())}
	r.states = make([]rowState, workers(len(r.sections)))
	forEach(len(r.sections), func(w, i int) {
		if sec := &r.sections[i]; !sec.skip {
			r.hopSection(&r.states[w], sec, &h.switches[sec.sw])
		}
	})
	problems, err := r.finish(faults, "hop counts")
	if err != nil {
		return nil, nil, err
	}
	return h, problems, nil
}

// hopSection reads the rows of a switch.
func (r *tableReader) hopSection(st *rowState, sec *section, rows *hopRows) {
	st.begin()
	rows.columns = int(r.f.Node(sec.sw).NumPorts) + 1
	sorted := true
	hops := make([]uint8, rows.columns)
	most := (sec.end-sec.body)/(len("0x0001:\n")+3*rows.columns) + 1
	rows.lids = make([]fabric.LID, 0, most)
	rows.hops = make([]uint8, 0, most*rows.columns)
	for at := sec.body; at < sec.end && !sec.failed; {
		if lid, next := r.printedHopRow(at, sec.end, hops); next > 0 && int(lid) > st.last {
			st.last = int(lid)
			rows.lids = append(rows.lids, lid)
			rows.hops = append(rows.hops, hops...)
			at = next
			continue
		}
		start := at
		var line []byte
		line, at = cutLine(r.src.data[:sec.end], at)
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			continue
		}
		lid, comment, err := hopRow(trimmed, hops)
		if err == nil && (lid == 0 || lid > fabric.MaxUnicastLID) {
			err = fmt.Errorf("LID %#x, want 0x1 to %#x", lid, fabric.MaxUnicastLID)
		}
		if err != nil {
			r.fault(sec, fault{at: start, kind: Dropped, err: err})
			continue
		}
		if at == len(r.src.data) && r.src.data[at-1] != '\n' {
			r.fault(sec, fault{at: start, kind: Truncated, err: fmt.Errorf("the last line has no end: %w", ErrTruncated)})
		}
		if int(lid) <= st.last {
			if i := slices.Index(rows.lids, lid); i >= 0 {
				if !bytes.Equal(rows.hops[i*rows.columns:(i+1)*rows.columns], hops) {
					r.drop(sec, start, "a second row for LID %d of switch %s, with other hop counts", lid, r.f.Node(sec.sw).GUID)
				}
				continue
			}
			sorted = false
		}
		st.last = max(st.last, int(lid))
		r.checkOwner(st, int(lid), comment, start)
		rows.lids = append(rows.lids, lid)
		rows.hops = append(rows.hops, hops...)
	}
	if !sorted {
		rows.sort()
	}
}

// printedHopRow reads a row at offset at as OpenSM or WriteLIDMatrix print it,
// for a LID whose port it names rightly, if any, and gives the start of the next
// line. next is 0 for any other line.
func (r *tableReader) printedHopRow(at, end int, hops []uint8) (lid fabric.LID, next int) {
	d := r.src.data[at:end]
	n := len("0x0001:") + 3*len(hops)
	if len(d) <= n || d[0] != '0' || d[1] != 'x' || d[6] != ':' {
		return 0, 0
	}
	h3, h2, h1, h0 := hexDigit[d[2]], hexDigit[d[3]], hexDigit[d[4]], hexDigit[d[5]]
	lid = fabric.LID(h3)<<12 | fabric.LID(h2)<<8 | fabric.LID(h1)<<4 | fabric.LID(h0)
	bad, blanks := h3|h2|h1|h0, uint8(0)
	columns := d[len("0x0001:"):n]
	for i := range hops {
		c := columns[3*i : 3*i+3 : 3*i+3]
		high, low := hexDigit[c[1]], hexDigit[c[2]]
		bad |= high | low
		blanks |= c[0] ^ ' '
		hops[i] = high<<4 | low
	}
	if bad > 15 || blanks != 0 || lid == 0 || lid > fabric.MaxUnicastLID {
		return 0, 0
	}
	if d[n] == '\n' {
		return lid, at + n + 1
	}
	const comment = " # portguid 0x"
	rest := d[n:]
	if len(rest) <= len(comment)+16 || string(rest[:len(comment)]) != comment || rest[len(comment)+16] != '\n' {
		return 0, 0
	}
	guid, ok := fabric.ReadDigits(rest[len(comment):])
	if p := r.f.LIDPort(lid); !ok || p == fabric.NoPort || r.f.PortGUID(p) != guid {
		return 0, 0
	}
	return lid, at + n + len(comment) + 17
}

func (r *hopRows) sort() {
	order := make([]int, len(r.lids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(r.lids[i]) - int(r.lids[j]) })
	lids := make([]fabric.LID, 0, len(r.lids))
	hops := make([]uint8, 0, len(r.hops))
	for _, i := range order {
		lids = append(lids, r.lids[i])
		hops = append(hops, r.hops[i*r.columns:(i+1)*r.columns]...)
	}
	r.lids, r.hops = lids, hops
}

// hopRow reads a row of opensm-lid-matrix.dump into hops, which has the
// columns that it must have, and gives its LID and its comment.
func hopRow(line []byte, hops []uint8) (lid fabric.LID, comment []byte, err error) {
	v, n := hex0x(line, 4)
	if n == 0 || n == len(line) || line[n] != ':' {
		return 0, nil, fmt.Errorf("want a row such as 0x0001: 00 ff 01 ..")
	}
	lid = fabric.LID(v)
	rest := line[n+1:]
	columns := 0
	for {
		i := skipBlanks(rest, 0)
		if i == len(rest) || rest[i] == '#' {
			comment = rest[i:]
			break
		}
		v, n := hexPrefix(rest[i:], 2)
		if i == 0 || n == 0 || i+n < len(rest) && !isBlank(rest[i+n]) {
			return 0, nil, fmt.Errorf("hop count in column %d: want 00 to ff", columns)
		}
		if columns < len(hops) {
			hops[columns] = uint8(v)
		}
		columns++
		rest = rest[i+n:]
	}
	if columns != len(hops) {
		return 0, nil, fmt.Errorf("%d hop counts, want %d: one for each port from 0 on", columns, len(hops))
	}
	return lid, comment, nil
}
