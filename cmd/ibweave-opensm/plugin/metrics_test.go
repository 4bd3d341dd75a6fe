package plugin

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// readMetrics waits until a file of metrics has a line, and gives it to promtool.
func readMetrics(t *testing.T, file, line string) {
	t.Helper()
	var text []byte
	short.Await(t, func() bool {
		text, _ = os.ReadFile(file)
		return regexp.MustCompile("(?m)^" + line + "$").Match(text)
	}, "no line ", line, " in ", file)
	promtool(t, text)
}

// promtool checks metrics with Prometheus' own tool, where tests may start it.
func promtool(t *testing.T, text []byte) {
	t.Helper()
	if !short.All() {
		return
	}
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v, %s of %s", err, out, text)
	}
}

// TestMetrics counts what the plugin does.
func TestMetrics(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	f = withLIDs(t, f, err)
	file := filepath.Join(t.TempDir(), "ibweave.prom")
	engines := []compile.Engine{{Engine: lft.Minhop{}}, {Engine: broken{name: "error"}}}
	if e, err := compile.EngineByName("updn"); err == nil {
		engines = append(engines, *e)
	}
	o := open(t, "metrics:\n  file: "+file+"\n", engines...)
	rnd := rand.New(rand.NewPCG(1, 2))
	route := func(s *Snapshot) *Tables {
		t.Helper()
		tables := short.Must(o.Route(o.engine("updn"), s))(t)
		o.Written(tables)
		return tables
	}
	route(snapshotOf(f, rnd))
	readMetrics(t, file, `ibweave_plugin_routings_from_scratch_total 1`)
	readMetrics(t, file, `ibweave_plugin_verdict\{verdict="clean"\} 1`)
	readMetrics(t, file, `ibweave_plugin_info\{engine="ibweave-updn"\} 1`)
	readMetrics(t, file, `ibweave_plugin_last_routing_switches 20`)
	readMetrics(t, file, `ibweave_plugin_last_routing_route_seconds 0\.\d+`)
	cut := f.Without(f.Port(0, f.Node(0).NumPorts))
	route(snapshotOf(cut, rnd))
	readMetrics(t, file, `ibweave_plugin_routings_kept_total 1`)
	readMetrics(t, file, fmt.Sprintf(`ibweave_plugin_last_routing_links %d`, f.NumLinks()-1))
	route(snapshotOf(cut, rnd))
	if _, err := o.Route(o.engine("error"), snapshotOf(f, rnd)); err == nil {
		t.Error("no error")
	}
	readMetrics(t, file, `ibweave_plugin_fallbacks_total 1`)
	// One faster cable makes no other slower: the series is on the scale of the first routing.
	fast, p := fabric.Link{Width: 4, Speed: fabric.NDR}, f.Port(0, f.Node(0).NumPorts)
	tables := route(snapshotOf(f.WithLinks(map[fabric.PortID]fabric.Link{p: fast, f.Peer(p): fast}), rnd))
	if b := tables.Verify.Balance; b.MaxRelative == nil || b.MaxRelative.Load < 2*float64(b.MaxRoutes) {
		t.Errorf("%+v", b)
	}
	readMetrics(t, file, fmt.Sprintf(`ibweave_plugin_last_routing_max_relative_load %d`, tables.Verify.Balance.MaxRoutes))
}

// TestMetricsUnwritable: a file of metrics that cannot be written is one line in OpenSM's log,
// however often it is tried, and one more when it fails again after it was written.
func TestMetricsUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	lines := make(chan string, 10)
	file := filepath.Join(dir, "ibweave.prom")
	m := newMeter(file, func(l Level, err error) { lines <- fmt.Sprint(l, " ", err) })
	settle := func() {
		m.update(func(s *measured) { s.Fallbacks++ })
		for writing := true; writing; {
			m.mu.Lock()
			writing = m.writing
			m.mu.Unlock()
			runtime.Gosched()
		}
	}
	want := func(n int) {
		t.Helper()
		if len(lines) != n {
			t.Fatalf("%d lines in OpenSM's log, want %d", len(lines), n)
		}
	}
	settle()
	settle()
	want(1)
	if line := <-lines; !strings.HasPrefix(line, "1 metrics are not written: ") || !strings.Contains(line, file) {
		t.Error(line)
	}
	short.Check(t, os.Mkdir(dir, 0o700))
	settle()
	want(0)
	short.Check(t, os.RemoveAll(dir))
	settle()
	want(1)

	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	o := open(t, "metrics:\n  file: "+file+"\n")
	tables := short.Must(o.Route(o.engine("updn"), snapshotOf(f, rand.New(rand.NewPCG(1, 2)))))(t)
	told := make(chan string, 100)
	log := o.host.Log
	o.host.Log = func(l Level, line string) {
		log(l, line)
		told <- line
	}
	o.Written(tables)
	for line := range told { // of which there are others
		if strings.HasPrefix(line, "ERR IBW9: metrics are not written: ") {
			break
		}
	}
}

// TestMetricsKilled kills a process that writes metrics again and again: the file is whole.
func TestMetricsKilled(t *testing.T) {
	if file := os.Getenv("IBWEAVE_METRICS"); file != "" {
		m := newMeter(file, nil)
		for {
			m.update(func(s *measured) { s.Fallbacks++ })
		}
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range short.Of(10, 3) {
		file := filepath.Join(t.TempDir(), "ibweave.prom")
		cmd := exec.Command(os.Args[0], "-test.run", "^TestMetricsKilled$")
		cmd.Env = append(os.Environ(), "IBWEAVE_METRICS="+file)
		short.Check(t, cmd.Start())
		short.Await(t, func() bool {
			_, err := os.Stat(file)
			return err == nil
		}, "no metrics")
		time.Sleep(time.Duration(rnd.IntN(20_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		text := short.Must(os.ReadFile(file))(t)
		promtool(t, text)
		if !strings.HasSuffix(string(text), "\nibweave_plugin_verdict{verdict=\"errors\"} 0\n") {
			t.Errorf("the file ends in %q", text[max(0, len(text)-100):])
		}
	}
}
