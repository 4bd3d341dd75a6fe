package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/verify"
)

// rates is what the machine can do, measured on all CPUs at once. What a stage has
// to do at least, by these rates, is its floor.
type rates struct {
	read   float64 // bytes of memory read, a second
	write  float64 // bytes of memory written
	copy   float64 // bytes of memory copied
	column float64 // bytes written down the columns of a forwarding table
	visits float64 // channels looked at by searches from all switches, breadth first
}

// floors measures what the stages of the work on one fabric take beside their
// floors.
type floors struct {
	out     io.Writer
	program string
	dir     string // on the disk that is measured
	runs    int
	peers   bool // run OpenSM and ibdmchk as well
	lean    bool // dumps without comments, and no other large ones
	stages  []string
	rate    rates
}

// memory is how many bytes the rates of memory are measured with; more than the
// caches have.
const memory = 256 << 20

// onAll runs work on each CPU and gives how long the least of five turns took.
func onAll(work func(cpu, cpus int)) time.Duration {
	cpus := runtime.GOMAXPROCS(0)
	least := time.Duration(0)
	for range 5 {
		start := time.Now()
		var wg sync.WaitGroup
		for cpu := range cpus {
			wg.Go(func() { work(cpu, cpus) })
		}
		wg.Wait()
		if t := time.Since(start); least == 0 || t < least {
			least = t
		}
	}
	return least
}

// part is a CPU's part of n things.
func part(n, cpu, cpus int) (from, to int) { return n * cpu / cpus, n * (cpu + 1) / cpus }

// sink keeps sums that nobody needs from being left out.
var sink [64]uint64

// measureMemory measures the memory, and searches in the graph of f's switches.
func measureMemory(f *fabric.Fabric) rates {
	a, b := make([]uint64, memory/8), make([]uint64, memory/8)
	rate := func(amount int, work func(cpu, cpus int)) float64 { return float64(amount) / onAll(work).Seconds() }
	var r rates
	r.write = rate(memory, func(cpu, cpus int) {
		from, to := part(len(a), cpu, cpus)
		clear(a[from:to])
	})
	r.copy = rate(memory, func(cpu, cpus int) {
		from, to := part(len(a), cpu, cpus)
		copy(b[from:to], a[from:to])
	})
	r.read = rate(memory, func(cpu, cpus int) {
		from, to := part(len(a), cpu, cpus)
		var sum [4]uint64
		for p := a[from:to]; len(p) >= 16; p = p[16:] {
			w := (*[16]uint64)(p)
			sum[0] += w[0] ^ w[1] ^ w[2] ^ w[3]
			sum[1] += w[4] ^ w[5] ^ w[6] ^ w[7]
			sum[2] += w[8] ^ w[9] ^ w[10] ^ w[11]
			sum[3] += w[12] ^ w[13] ^ w[14] ^ w[15]
		}
		sink[cpu%len(sink)] = sum[0] + sum[1] + sum[2] + sum[3]
	})
	const rows, columns = 4096, 2048
	t := lft.NewTables(rows, fabric.MaxUnicastLID)
	r.column = rate(rows*columns, func(cpu, cpus int) {
		from, to := part(columns, cpu, cpus)
		for l := from; l < to; l++ {
			for s := range fabric.NodeID(rows) {
				t.Row(s)[l] = fabric.PortNum(l)
			}
		}
	})
	n := f.NumSwitches()
	links := 0
	for s := range fabric.NodeID(n) {
		_, to := f.SwitchLinks(s)
		links += len(to)
	}
	// No more searches than take a moment.
	sources := max(1, min(n, 20_000_000/max(1, links)))
	distance, queue := make([][]int32, runtime.GOMAXPROCS(0)), make([][]fabric.NodeID, runtime.GOMAXPROCS(0))
	r.visits = rate(links*sources, func(cpu, cpus int) {
		if distance[cpu] == nil {
			distance[cpu], queue[cpu] = make([]int32, n), make([]fabric.NodeID, 0, n)
		}
		from, to := part(sources, cpu, cpus)
		for s := from; s < to; s++ {
			search(f, fabric.NodeID(s), distance[cpu], queue[cpu])
		}
	})
	return r
}

// search fills in the distances from a switch, -1 where there is no way.
func search(f *fabric.Fabric, from fabric.NodeID, distance []int32, queue []fabric.NodeID) {
	for s := range distance {
		distance[s] = -1
	}
	distance[from] = 0
	queue = append(queue[:0], from)
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		_, to := f.SwitchLinks(s)
		for _, u := range to {
			if distance[u] < 0 {
				distance[u] = distance[s] + 1
				queue = append(queue, u)
			}
		}
	}
}

// measureDisk gives the rate at which so many bytes get into files in dir and onto
// the disk, by one writer and by one for each CPU, whichever is faster.
func measureDisk(dir string, size int64, runs int) (float64, error) {
	block := bytes.Repeat([]byte("0x0001 001 # Channel Adapter portguid 0x0002c90300000001: 'host'\n"), 1<<20/64)[:1<<20]
	least := time.Duration(0)
	for range runs {
		for _, writers := range []int{1, runtime.GOMAXPROCS(0)} {
			start := time.Now()
			errs := make([]error, writers)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					errs[w] = files.Write(filepath.Join(dir, fmt.Sprintf("disk-%d", w)), func(out io.Writer) error {
						for left := size / int64(writers); left > 0; left -= int64(len(block)) {
							if _, err := out.Write(block[:min(int64(len(block)), left)]); err != nil {
								return err
							}
						}
						return nil
					})
				})
			}
			wg.Wait()
			t := time.Since(start)
			for w := range writers {
				os.Remove(filepath.Join(dir, fmt.Sprintf("disk-%d", w)))
			}
			if err := errors.Join(errs...); err != nil {
				return 0, err
			}
			if least == 0 || t < least {
				least = t
			}
		}
	}
	return float64(size) / least.Seconds(), nil
}

// bound is a floor, in words and in seconds.
type bound struct {
	words   string
	seconds float64
}

func atRate(amount int64, unit, what string, rate float64, of string) bound {
	return bound{fmt.Sprintf("%s %s %s, at the rate of %s", grouped(amount), unit, what, of), float64(amount) / rate}
}

// grouped is a number in words that fit into a table.
func grouped(n int64) string {
	switch {
	case n >= 10_000_000_000:
		return fmt.Sprintf("%.1f G", float64(n)/1e9)
	case n >= 10_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprintf("%d ", n)
}

// wanted is whether a stage is to be measured.
func (m *floors) wanted(stage string) bool {
	return len(m.stages) == 0 || slices.ContainsFunc(m.stages, func(s string) bool { return strings.Contains(stage, s) })
}

// measure prints a row: the least of the runs beside its floor and its peer, which
// may be nil. size is the bytes of text that the stage reads or writes, 0 for others.
func (m *floors) measure(stage string, floor bound, size int64, peer func() (string, time.Duration, error), run func() error) error {
	if !m.wanted(stage) {
		return nil
	}
	var took []time.Duration
	for range m.runs {
		runtime.GC()
		start := time.Now()
		if err := run(); err != nil {
			return fmt.Errorf("%s: %w", stage, err)
		}
		took = append(took, time.Since(start))
	}
	return m.row(stage, floor, size, peer, slices.Min(took))
}

func (m *floors) row(stage string, floor bound, size int64, peer func() (string, time.Duration, error), ours time.Duration) error {
	rate := ""
	if size > 0 {
		rate = fmt.Sprintf("%.0f", float64(size)/1e6/ours.Seconds()/float64(runtime.GOMAXPROCS(0)))
	}
	theirs, times := "none", ""
	if peer != nil && m.peers {
		// As often as ours, and the least of them, too.
		name, t, err := peer()
		for i := 1; i < m.runs && err == nil; i++ {
			var again time.Duration
			name, again, err = peer()
			t = min(t, again)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", stage, err)
		}
		theirs, times = fmt.Sprintf("%s %s", name, inWords(t)), fmt.Sprintf("%.1f", float64(t)/float64(ours))
	} else if peer != nil {
		theirs = "not run"
	}
	fmt.Fprintf(m.out, "| %s | %s | %s | %.1f | %s | %s | %s | %s |\n", stage, inWords(duration(floor.seconds)), inWords(ours), ours.Seconds()/floor.seconds,
		rate, floor.words, theirs, times)
	return nil
}

// inWords is a time with three digits.
func inWords(t time.Duration) string {
	switch s := t.Seconds(); {
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	case s >= 0.1:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case s >= 0.001:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.0f µs", t.Seconds()*1e6)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// benchFloors prints the table of a fabric: a fat tree's radix, or a mesh such as
// 30x30.
func benchFloors(ctx context.Context, which string, m *floors) (err error) {
	isMesh := strings.Contains(which, "x")
	var f *fabric.Fabric
	if isMesh {
		f, err = grid(m.out, which)
	} else {
		f, err = fatTree(m.out, which)
	}
	if err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp(m.dir, "ibweave-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(m.dir)
	m.rate = measureMemory(f)
	fmt.Fprintf(m.out, "memory: read %.1f, written %.1f, copied %.1f GB/s; down the columns of tables %.2f GB/s; searches look at %.0f million channels a second\n",
		m.rate.read/1e9, m.rate.write/1e9, m.rate.copy/1e9, m.rate.column/1e9, m.rate.visits/1e6)
	fmt.Fprintf(m.out, "\n| stage | floor | ours | ours / floor | MB/s a core | what the floor is | peer | peer / ours |\n|---|---|---|---|---|---|---|---|\n")

	text := topology.Append(nil, f)
	size := int64(len(text))
	if err := m.measure("read topology", atRate(size, "bytes", "of text read once", m.rate.read, "reading memory"), size, nil, func() error {
		_, _, err := topology.Parse("text", text, topology.Options{})
		return err
	}); err != nil {
		return err
	}
	bare, err := f.WithLIDs(make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts()))
	if err != nil {
		return err
	}
	const lidBytes = 2 + 1
	lids := atRate(int64(f.NumPorts())*lidBytes+int64(f.MaxLID())*4, "bytes", "of LIDs, LMCs and owners written", m.rate.write, "writing memory")
	if err := m.measure("assign LIDs", lids, 0, nil, func() error {
		_, err := lft.AssignLIDs(bare, lft.LIDOptions{})
		return err
	}); err != nil {
		return err
	}
	routing, err := m.route(ctx, f, isMesh)
	if err != nil {
		return err
	}
	if err := m.verify(ctx, routing); err != nil {
		return err
	}
	if err := m.multicast(ctx, routing); err != nil {
		return err
	}
	if err := m.dumps(ctx, routing); err != nil {
		return err
	}
	return m.audit(ctx, routing)
}

// route measures the engines that suit the fabric, and returns what the last made.
func (m *floors) route(ctx context.Context, f *fabric.Fabric, isMesh bool) (*lft.Routing, error) {
	channels := 0
	hasHosts := make([]bool, f.NumSwitches())
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			hasHosts[s] = true
		}
	}
	targets := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		_, to := f.SwitchLinks(s)
		channels += len(to)
		if hasHosts[s] {
			targets++
		}
	}
	entries := int64(f.NumSwitches()) * int64(f.MaxLID())
	trees := atRate(int64(targets)*int64(channels), "channels", "looked at, each once for each switch with hosts", m.rate.visits, "searches")
	written := atRate(entries, "bytes", "of entries written", m.rate.write, "writing memory")
	engines := []struct {
		name, peer string
		floor      bound
	}{{"minhop", "minhop", trees}, {"updn", "updn", trees}}
	if isMesh {
		engines = append(engines[:1:1], struct {
			name, peer string
			floor      bound
		}{"xy", "dor", written})
	}
	var twin *ibsim.Twin
	var last *lft.Routing
	for i, e := range engines {
		last = nil
		engine, err := compile.EngineByName(e.name)
		if err != nil {
			return nil, err
		}
		run := func() error {
			last, err = engine.Route(ctx, f, lft.Options{})
			return err
		}
		peer := func() (string, time.Duration, error) {
			if twin == nil {
				if twin, err = ibsim.NewTwin(f); err != nil {
					return "", 0, err
				}
			}
			t, err := openSM(ctx, twin, ibsim.OpenSMConfig{Engine: e.peer, Flags: 0x07})
			return "OpenSM " + e.peer, t, err
		}
		if err := m.measure("route "+e.name, e.floor, 0, peer, run); err != nil {
			return nil, err
		}
		if last == nil && i == len(engines)-1 { // other stages need tables
			if err := run(); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

// verify measures the check of a routing's unicast tables.
func (m *floors) verify(ctx context.Context, r *lft.Routing) error {
	f := r.Fabric
	entries := int64(f.NumSwitches()) * int64(f.MaxLID())
	floor := atRate(entries, "entries", "followed, each once", m.rate.visits, "searches")
	return m.measure("verify unicast", floor, 0, nil, func() error {
		return clean(verify.Check(ctx, f, r.Tables, verify.Options{SL2VL: r.SL2VL, PathSLs: r.PathSLs}))
	})
}

// clean is an error where tables that are to be right are not.
func clean(v *verify.Result, err error) error {
	if err == nil && v.Fails(verify.Error) {
		return fmt.Errorf("the tables are %s", v.Verdict)
	}
	return err
}

// multicast measures trees for groups of random ports, one sender each, and their
// check.
func (m *floors) multicast(ctx context.Context, r *lft.Routing) error {
	// Unicast paths of fat trees meet again, so that their union is no tree.
	var scheme mft.Scheme = mft.Union{}
	stage := "multicast union"
	if r.Order != nil {
		scheme, stage = mft.UpdnTree{Order: r.Order}, "multicast updn-tree"
	}
	if !m.wanted(stage) && !m.wanted("verify multicast") {
		return nil
	}
	f := r.Fabric
	const groups, members = 400, 64
	random := rand.New(rand.NewPCG(1, 2))
	list := make([]mft.Group, groups)
	for i := range list {
		ports := make([]fabric.PortID, 0, members)
		for _, k := range random.Perm(len(f.CAPorts()))[:min(members, len(f.CAPorts()))] {
			ports = append(ports, f.CAPorts()[k])
		}
		sender := ports[0]
		slices.Sort(ports)
		list[i] = mft.Group{Name: fmt.Sprintf("group %d", i), Receivers: ports, Senders: []fabric.PortID{sender}}
	}
	var err error
	var plan *mft.Plan
	plant := func() error {
		plan, err = mft.Fit(ctx, r, list, mft.Options{}, scheme)
		return err
	}
	if err := plant(); err != nil {
		return err
	}
	// Each link of a tree has one port in a mask, or two where both its ends are
	// switches.
	crossed := int64(0)
	for _, l := range plan.Tables.MLIDs() {
		crossed += int64(len(plan.Tables.Ports(l)))
	}
	floor := atRate(crossed, "ports", "in the masks of the trees, each looked at once", m.rate.visits, "searches")
	if err := m.measure(stage, floor, 0, nil, plant); err != nil {
		return err
	}
	// There is no check of multicast alone: its time is what it adds.
	if !m.wanted("verify multicast") {
		return nil
	}
	var alone, both []time.Duration
	for range m.runs {
		start := time.Now()
		if err := clean(verify.Check(ctx, f, r.Tables, verify.Options{SL2VL: r.SL2VL, PathSLs: r.PathSLs})); err != nil {
			return err
		}
		alone = append(alone, time.Since(start))
		start = time.Now()
		opt := verify.Options{SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: &verify.Multicast{Tables: plan.Tables, Trees: plan.Trees}}
		if err := clean(verify.Check(ctx, f, r.Tables, opt)); err != nil {
			return err
		}
		both = append(both, time.Since(start))
	}
	return m.row("verify multicast", floor, 0, nil, max(time.Microsecond, slices.Min(both)-slices.Min(alone)))
}

// textForm is a file of a compiled directory, both ways.
type textForm struct {
	name  string
	write func(io.Writer) error
	read  func(data []byte) error
}

// dumps measures each dump: formatted into memory, written to the disk and synced,
// and read back; then all files of compile together.
func (m *floors) dumps(ctx context.Context, r *lft.Routing) error {
	f, t := r.Fabric, r.Tables
	opt := dump.WriteOptions{Lean: m.lean}
	lfts := func(data []byte) error {
		_, _, err := dump.ReadLFTs("in", data, f, dump.Options{})
		return err
	}
	forms := []textForm{
		{outdir.LFTsName, func(w io.Writer) error { return dump.WriteLFTs(w, f, t, opt) }, lfts},
		{outdir.FDBsName, func(w io.Writer) error { return dump.WriteFDBs(w, f, t, opt) }, lfts},
		{"dump_lfts", func(w io.Writer) error { return dump.WriteIBRoute(w, f, t, opt) }, lfts},
		{outdir.LIDMatrixName, func(w io.Writer) error { return dump.WriteLIDMatrix(w, f, t, opt) }, func(data []byte) error {
			_, _, err := dump.ReadLIDMatrix("in", data, f, dump.Options{})
			return err
		}},
		{outdir.SubnetListName, func(w io.Writer) error { return dump.WriteSubnetList(w, f, dump.SubnetListOptions{}) }, func(data []byte) error {
			_, _, err := dump.ReadSubnetList("in", data, dump.Options{})
			return err
		}},
		{outdir.TopologyName, func(w io.Writer) error { return topology.Write(w, f) }, func(data []byte) error {
			_, _, err := topology.Parse("in", data, topology.Options{})
			return err
		}},
		{outdir.GUID2LIDName, func(w io.Writer) error { return dump.WriteGUID2LID(w, f) }, func(data []byte) error {
			_, _, err := dump.ReadGUID2LID("in", data, dump.Options{})
			return err
		}},
	}
	for i := range forms {
		form := &forms[i]
		if m.lean && form.name != outdir.LFTsName {
			continue
		}
		if !m.wanted("format "+form.name) && !m.wanted("write "+form.name) && !m.wanted("read "+form.name) {
			continue
		}
		if err := m.dump(form); err != nil {
			return err
		}
	}
	if err := m.all(ctx, r); err != nil {
		return err
	}
	if !m.wanted("diff") {
		return nil
	}
	entries := int64(f.NumSwitches()) * int64(f.MaxLID())
	a, b := &diff.Snapshot{Name: "old", Fabric: f, Tables: t}, &diff.Snapshot{Name: "new", Fabric: f, Tables: t.Clone()}
	return m.measure("diff", atRate(2*entries, "bytes", "of entries of both read", m.rate.read, "reading memory"), 0, nil, func() error {
		_, err := diff.Compare(ctx, a, b, diff.Options{})
		return err
	})
}

// dump measures one form.
func (m *floors) dump(form *textForm) error {
	var size counter
	if err := form.write(&size); err != nil {
		return err
	}
	n := int64(size)
	if err := m.measure("format "+form.name, atRate(n, "bytes", "of text written once", m.rate.write, "writing memory"), n, nil, func() error {
		var c counter
		return form.write(&c)
	}); err != nil {
		return err
	}
	name := filepath.Join(m.dir, form.name)
	if !m.wanted("write "+form.name) && !m.wanted("read "+form.name) {
		return nil
	}
	write := func() error { return files.Write(name, form.write) }
	if m.wanted("write " + form.name) {
		rate, err := measureDisk(m.dir, n, m.runs)
		if err != nil {
			return err
		}
		disk := atRate(n, "bytes", "written and synced", rate, fmt.Sprintf("the disk, %.0f MB/s for as much", rate/1e6))
		if err := m.measure("write "+form.name, disk, n, nil, write); err != nil {
			return err
		}
	}
	defer os.Remove(name)
	if err := write(); err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return m.measure("read "+form.name, atRate(n, "bytes", "of text read once", m.rate.read, "reading memory"), n, nil, func() error { return form.read(data) })
}

// all measures the directory that compile writes.
func (m *floors) all(ctx context.Context, r *lft.Routing) error {
	const stage = "write all, compile -o"
	if !m.wanted(stage) {
		return nil
	}
	v, err := verify.Check(ctx, r.Fabric, r.Tables, verify.Options{SL2VL: r.SL2VL, PathSLs: r.PathSLs})
	if err != nil {
		return err
	}
	result := &compile.Result{Routing: r, Verify: v}
	dir := filepath.Join(m.dir, "tables")
	size := int64(0)
	run := func() error {
		names, err := outdir.Write(ctx, dir, result, outdir.Options{Version: "bench", InstallDir: "/etc/opensm/ibweave", Lean: m.lean})
		size = 0
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			size += info.Size()
		}
		return err
	}
	var took []time.Duration
	for range m.runs {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		start := time.Now()
		if err := run(); err != nil {
			return err
		}
		took = append(took, time.Since(start))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	rate, err := measureDisk(m.dir, size, m.runs)
	if err != nil {
		return err
	}
	disk := atRate(size, "bytes", "written and synced", rate, fmt.Sprintf("the disk, %.0f MB/s for as much", rate/1e6))
	return m.row(stage, disk, size, nil, slices.Min(took))
}

// audit measures check as a whole process on our own files, and ibdmchk on the same.
func (m *floors) audit(ctx context.Context, r *lft.Routing) error {
	if m.lean || !m.wanted("audit") {
		return nil
	}
	f := r.Fabric
	list, fdbs, mcfdbs := filepath.Join(m.dir, outdir.SubnetListName), filepath.Join(m.dir, outdir.FDBsName), filepath.Join(m.dir, outdir.MCFDBsName)
	size := int64(0)
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{list, func(w io.Writer) error { return dump.WriteSubnetList(w, f, dump.SubnetListOptions{}) }},
		{fdbs, func(w io.Writer) error { return dump.WriteFDBs(w, f, r.Tables, dump.WriteOptions{}) }},
		{mcfdbs, func(w io.Writer) error { return dump.WriteMCFDBs(w, mft.NewTables(f), dump.WriteOptions{}) }},
	} {
		if err := files.Write(file.name, file.write); err != nil {
			return err
		}
		info, err := os.Stat(file.name)
		if err != nil {
			return err
		}
		size += info.Size()
	}
	entries := int64(f.NumSwitches()) * int64(f.MaxLID())
	floor := atRate(size, "bytes", "of text read once", m.rate.read, "reading memory")
	follow := atRate(entries, "entries", "followed", m.rate.visits, "searches")
	floor = bound{floor.words + ", and " + follow.words, floor.seconds + follow.seconds}
	peer := func() (string, time.Duration, error) {
		// It ends by a segmentation fault on many fabrics, after printing.
		t, text, err := whole(ctx, m.dir, "ibdmchk", "-s", list, "-f", fdbs, "-m", mcfdbs)
		if err != nil && (strings.Contains(text, "Checking credit loops") || strings.Contains(text, "no credit loops found")) {
			err = nil
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && !exit.Exited() {
			return "ibdmchk, until it crashed", t, nil
		}
		return "ibdmchk", t, err
	}
	return m.measure("audit, ibweave check", floor, size, peer, func() error {
		_, text, err := whole(ctx, "", m.program, "check", "-t", list, "--lfts", fdbs)
		return cmp.Or(err, failed(text))
	})
}

// failed is an error where an audit did not say that all is well.
func failed(text string) error {
	if !strings.Contains(text, "clean") {
		return errors.New(text)
	}
	return nil
}
