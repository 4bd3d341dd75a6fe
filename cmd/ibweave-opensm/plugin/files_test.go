package plugin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
)

// A read that hangs is waited for once, and no other begins before it has come to its
// end. Its result is then the next one. A panic is an error.
func TestBackground(t *testing.T) {
	release := make(chan struct{})
	reads := 0
	read := func() (int, error) {
		reads++
		n := reads
		<-release
		return n, nil
	}
	b := background[int]{file: "f"}
	var hang *hangError
	if _, err := b.get(time.Millisecond, read); !errors.As(err, &hang) || hang.file != "f" {
		t.Fatal(err)
	}
	b.since = b.since.Add(-time.Hour)
	for range 3 { // which would take hours if it waited
		if _, err := b.get(time.Hour, read); !errors.As(err, &hang) {
			t.Fatal(err)
		}
	}
	close(release)
	b.since = time.Now()
	for want := 1; want <= 3; want++ {
		if n, err := b.get(time.Hour, read); n != want || err != nil {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	if _, err := b.get(time.Hour, func() (int, error) { panic("broken") }); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a panic is %v", err)
	}
}

// kinds makes files that are none of ours at a name, and gives how a line about them
// ends.
var kinds = map[string]struct {
	make func(name string) error
	want string
}{
	"sparse":   {func(name string) error { return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 8<<30)) }, "want less"},
	"FIFO":     {func(name string) error { return unix.Mkfifo(name, 0o600) }, "want a regular file"},
	"folder":   {func(name string) error { return os.Mkdir(name, 0o700) }, "want a file"},
	"loop":     {func(name string) error { return os.Symlink(name, name) }, "too many levels of symbolic links"},
	"endless":  {func(name string) error { return os.Symlink("/dev/zero", name) }, "want a regular file"},
	"vanished": {func(string) error { return nil }, "no such file or directory"},
}

// Neither the configuration nor the groups nor their LIDs can be what is no regular file
// of a size that they may have: one line says what is wrong, at the start and later.
func TestFilesOfOtherKinds(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	tree := mft.Tree{Name: "g", MGID: mgid(0), MLID: mft.MinMLID, Senders: f.CAPorts()[:1], Receivers: f.CAPorts(), Scheme: "union"}
	for name, kind := range kinds {
		for _, which := range []string{"ibweave.yaml", outdir.GroupsName, outdir.GUID2LIDName} {
			t.Run(name+" "+which, func(t *testing.T) {
				dir := t.TempDir()
				groups := compiledGroups(t, dir, f, []mft.Tree{tree})
				config := filepath.Join(dir, "ibweave.yaml")
				writeFile(t, config, []byte("multicast: {groups: "+groups+"}\n"))
				var lines []string
				begin := func() *Plugin {
					p := Open("--config "+config, Host{LogDir: dir, Log: func(_ Level, line string) { lines = append(lines, line) }})
					t.Cleanup(func() { _ = p.Close() })
					return p
				}
				before := begin()
				if before.groups == nil || len(lines) > 0 {
					t.Fatal(lines)
				}
				file := filepath.Join(dir, which)
				short.Check(t, errors.Join(os.Remove(file), kind.make(file)))
				if after := begin(); after.failed == nil || after.failed.Code != BadConfig {
					t.Error("the plugin begins with it")
				}
				if len(lines) != 1 || !strings.HasPrefix(lines[0], "ERR IBW1: ") || !strings.Contains(lines[0], file) || !strings.HasSuffix(lines[0], kind.want) {
					t.Errorf("OpenSM's log has %q, want a line with %s that ends with %q", lines, file, kind.want)
				}
				if which == "ibweave.yaml" {
					return
				}
				lines = nil
				s := snapshotOf(f, rand.New(rand.NewPCG(1, 1)))
				for range 3 {
					short.Must(before.Route(slices.Index(before.Engines(), "ibweave-updn"), s))(t)
				}
				if len(lines) != 1 || !strings.HasSuffix(lines[0], kind.want+"; the last good groups stay") || before.groups.groups[mgid(0)] == nil {
					t.Errorf("OpenSM's log has %q, want one line", lines)
				}
			})
		}
	}
}

// What parses takes time and memory in proportion to its size, and no line in a log is
// as long as a file.
func TestBombs(t *testing.T) {
	bombs := map[string]string{
		"aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + strings.Repeat("b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", 9),
		"nested":  strings.Repeat("[", maxConfig),
		"blocks":  strings.Repeat("- ", maxConfig/2),
		"anchors": "roots: &a [" + strings.Repeat("*a,", maxConfig/3-100) + "]",
		"line":    "vls: " + strings.Repeat("9", maxConfig-10),
		"escape":  "vls: \"\x1b[2J\"",
	}
	for _, name := range short.Keys(bombs, "aliases", "escape") {
		_, err := ParseConfig("f", []byte(bombs[name]))
		if err == nil {
			t.Errorf("%s is a configuration", name)
			continue
		}
		if line := oneLine(err.Error()); len(line) > maxLine+10 || strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("%s: a line of %d bytes: %.100q", name, len(line), line)
		}
	}
	if line := (&Error{Code: BadConfig, Err: errors.New("a\x1b[2J\u202e\n\tb")}).Error(); line != `ERR IBW1: a\x1b[2J\u202e; b` {
		t.Errorf("%q", line)
	}
	var roots strings.Builder
	roots.WriteString("roots: [0x1")
	for i := 2; roots.Len() < maxConfig-20; i++ {
		fmt.Fprintf(&roots, ", 0x%x", i)
	}
	if c, err := ParseConfig("f", []byte(roots.String()+"]")); err != nil || len(c.Roots) < 100000 {
		t.Errorf("%d roots: %v", len(c.Roots), err)
	}
	const head = `[{"name":"a","mgid":"ff12:1b3e::1","mlid":49153,"senders":[1],"receivers":[`
	for text, want := range map[string]string{
		strings.Repeat("[", 1<<20):                                             "exceeded max depth",
		"[" + strings.Repeat("{},", 1<<20) + "{}]":                             "no MGID",
		head + strings.Repeat("1,", 1<<20) + `1],"scheme":"union"}]`:           `group "a" lists 1048577 LIDs: want each once, and guid2lid has 1 ports`,
		`[{"name":"` + strings.Repeat("x", 1<<20) + "\x1b" + `"}]`:             "invalid character",
		`[{"name":"` + strings.Repeat("x", 1<<20) + "\\n\\u001b" + `"}]`:       "group ",
		`[{"senders":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000): "",
	} {
		_, err := parseGroups("f", []byte(text), map[fabric.LID]fabric.GUID{1: 0x11})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: %.200v, want %q", text, err, want)
			continue
		}
		if line := oneLine(err.Error()); len(line) > maxLine+10 || strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("%.50s: a line of %d bytes", text, len(line))
		}
	}
}

// logging is a log, and what OpenSM's log has of it.
type logging struct {
	*Plugin
	name  string
	lines chan string
}

func newLogging(t *testing.T, name string) *logging {
	t.Helper()
	l := &logging{name: name, lines: make(chan string, 100)}
	config := filepath.Join(t.TempDir(), "ibweave.yaml")
	writeFile(t, config, []byte("log: {file: "+name+"}\n"))
	l.Plugin = Open("--config "+config, Host{LogDir: t.TempDir(), Log: func(_ Level, line string) { l.lines <- line }})
	t.Cleanup(func() { _ = l.Close() })
	if l.failed != nil {
		t.Errorf("for its log the plugin does not begin: %v", l.failed)
	}
	return l
}

// say logs some lines, one after the other, and gives what OpenSM's log has of it.
func (l *logging) say(t *testing.T, lines ...string) (told []string) {
	t.Helper()
	for _, line := range lines {
		l.log.Info(line)
		short.Check(t, l.log.Sync())
	}
	for len(l.lines) > 0 {
		told = append(told, <-l.lines)
	}
	return told
}

func (l *logging) has(t *testing.T) string {
	t.Helper()
	data := short.Must(os.ReadFile(l.name))(t)
	return string(data)
}

// A log that is moved away or removed is made again. Where it cannot be, OpenSM's log
// says so once, and the log itself later how many lines it lacks.
func TestLogVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	short.Check(t, os.Mkdir(dir, 0o700))
	l := newLogging(t, filepath.Join(dir, "ibweave.log"))
	told := l.say(t, "first")
	short.Check(t, os.Rename(l.name, l.name+".1"))
	told = append(told, l.say(t, "second")...)
	short.Check(t, os.Remove(l.name))
	told = append(told, l.say(t, "third")...)
	if has := l.has(t); strings.Count(has, "\n") != 1 || !strings.Contains(has, "third") || len(told) > 0 {
		t.Errorf("%q, told %q", has, told)
	}
	short.Check(t, os.Rename(dir, dir+".old"))
	told = l.say(t, "lost", "lost", "lost")
	if len(told) != 1 || told[0] != "ERR IBW9: log: open "+l.name+": no such file or directory; its lines are counted until it can be written" {
		t.Errorf("%q", told)
	}
	short.Check(t, os.Rename(dir+".old", dir))
	told = l.say(t, "fourth", "fifth")
	if len(told) != 1 || told[0] != "log: "+l.name+" is written again, 3 lines are lost" {
		t.Errorf("%q", told)
	}
	has := strings.Split(l.has(t), "\n")
	if len(has) != 5 || !strings.Contains(has[1], `lines are lost here	{"lines": 3, "error": "open `) || !strings.Contains(has[2], "fourth") {
		t.Errorf("%q", has)
	}
}

// A log is a regular file or /dev/null. All else costs its lines, and no engine.
func TestLogOfOtherKinds(t *testing.T) {
	if told := newLogging(t, "/dev/null").say(t, "a", "b"); len(told) > 0 {
		t.Errorf("/dev/null: %q", told)
	}
	for name, kind := range kinds {
		if name == "sparse" || name == "vanished" {
			continue
		}
		file := filepath.Join(t.TempDir(), "ibweave.log")
		short.Check(t, kind.make(file))
		l := newLogging(t, file)
		if told := l.say(t, "a", "b"); len(told) != 1 || !strings.HasPrefix(told[0], "ERR IBW9: log: ") || !strings.Contains(told[0], file) {
			t.Errorf("%s: %q", name, told)
		}
		if err := errors.Join(l.Setup(0, Settings{}, ""), l.log.Sync()); err != nil {
			t.Error(err)
		}
		if name == "folder" { // it is ours then
			short.Check(t, os.Remove(file))
			if told := l.say(t, "c"); len(told) != 1 || !strings.Contains(l.has(t), `{"lines": 3`) {
				t.Errorf("%s: %q\n%s", name, told, l.has(t))
			}
		}
	}
}

// Characters that turn or end lines are escaped in OpenSM's log and in both forms of ours.
func TestHiddenInLogs(t *testing.T) {
	for _, form := range []string{"json", "console"} {
		dir := t.TempDir()
		config := filepath.Join(dir, "ibweave.yaml")
		writeFile(t, config, []byte("log: {format: "+form+"}\n"))
		var told string
		p := Open("--config "+config, Host{LogDir: dir, Log: func(_ Level, line string) { told = line }})
		p.host.Log(LogInfo, "a\u202eb\u2028c\x1b")
		p.log.Info("x\u202ey", zap.String("switch", "leaf\u2066 1"))
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if told != `a\u202eb\u2028c\x1b` {
			t.Errorf("OpenSM's log has %q", told)
		}
		has, err := os.ReadFile(filepath.Join(dir, LogName))
		if err != nil || !strings.Contains(string(has), `x\u202ey`) || !strings.Contains(string(has), `leaf\u2066 1`) {
			t.Errorf("our log has %q, %v", has, err)
		}
	}
}

// On a full disk lines are counted, and a line that is cut off is ended before the next.
// So are those that the queue has no room for.
func TestLogIsFull(t *testing.T) {
	var told []string
	full := short.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	l := &logFile{name: "/dev/full", file: full, encoder: encoder, wake: make(chan struct{}, 1), tell: func(_ Level, err error) { told = append(told, err.Error()) }}
	l.idle.L = &l.mu
	for range maxQueue/1000 + 7 {
		if n, err := l.Write([]byte(strings.Repeat("x", 999) + "\n")); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if l.lost != 7-maxQueue%1000/1000 || len(told) != 1 || !strings.Contains(told[0], "not done within 3s") || len(l.queue) > maxQueue {
		t.Errorf("%d lines are lost, %d bytes wait, told %q", l.lost, len(l.queue), told)
	}
	l.closed = true
	close(l.wake)
	l.run()
	if want := maxQueue/1000 + 7; l.lost != want || len(told) != 1 || l.why == nil || !errors.Is(l.why, unix.ENOSPC) {
		t.Errorf("%d lines are lost, want %d; told %q, why %v", l.lost, want, told, l.why)
	}
	name := filepath.Join(t.TempDir(), "ibweave.log")
	writeFile(t, name, []byte("half"))
	half := short.Must(os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0))(t)
	l = &logFile{name: name, file: half, torn: true}
	if n, err := l.appendLines([]byte("a line\n"), 0, nil); n != 7 || err != nil || l.torn {
		t.Error(n, err)
	}
	if has, err := os.ReadFile(name); string(has) != "half\na line\n" {
		t.Errorf("%q, %v", has, err)
	}
}

// What takes more memory than this process may have is not begun: a line says so, and it
// is tried again.
func TestNoRoom(t *testing.T) {
	var old unix.Rlimit
	short.Check(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3})
	f = withLIDs(t, f, err)
	o := open(t, "")
	s := snapshotOf(f, rand.New(rand.NewPCG(1, 1)))
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, make([]byte, 8<<20))
	statm := short.Must(os.ReadFile("/proc/self/statm"))(t)
	var pages uint64
	short.Must(fmt.Sscan(string(statm), &pages))(t)
	limit := old
	limit.Cur = pages*uint64(os.Getpagesize()) + 4<<30
	short.Check(t, unix.Setrlimit(unix.RLIMIT_AS, &limit))
	room := room()
	o.needs = func(*fabric.Fabric) int64 { return room + 1<<30 }
	_, routed := o.Route(o.engine("updn"), s)
	o.needs = routingNeeds
	_, read := readFile(file, 32<<20, 1<<10)
	_, fine := readFile(file, 32<<20, 8)
	short.Check(t, unix.Setrlimit(unix.RLIMIT_AS, &old))
	if fine != nil || room < 1<<30 || room > 8<<30 {
		t.Errorf("%v, room for %d bytes", fine, room)
	}
	var e *Error
	if !errors.As(routed, &e) || e.Code != Limits || !strings.HasPrefix(o.lines[0], "1 ERR IBW8: ibweave-updn: a routing may take ") || !strings.Contains(o.lines[0], " of memory, and this process may have ") {
		t.Errorf("%v, %q", routed, o.lines)
	}
	if read == nil || !strings.HasPrefix(read.Error(), "to read "+file+" may take 8 GiB of memory") {
		t.Error(read)
	}
	if _, err := o.Route(o.engine("updn"), s); err != nil {
		t.Errorf("it is not tried again: %v", err)
	}
}

// Switches of roots that are not in the subnet are a line in OpenSM's log, once for each
// time that others are missing: an error when none is there.
func TestAbsentRoots(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	f = withLIDs(t, f, err)
	rnd := rand.New(rand.NewPCG(1, 1))
	there := f.Node(0).GUID.String()
	cables, _ := f.SwitchLinks(0)
	whole, damaged := snapshotOf(f, rnd), snapshotOf(f.Without(cables[0]), rnd)
	for roots, want := range map[string]string{
		there:                "",
		"0x1":                "1 ERR IBW1: no switch of roots in FILE is in the subnet: 0x0000000000000001; the engine chooses the top of its order itself",
		there + ", 0x2":      "2 roots in FILE: 1 of 2 switches are not in the subnet: 0x0000000000000002",
		"1,2,3,4,5,6,7":      "1 ERR IBW1: no switch of roots in FILE is in the subnet: 0x0000000000000001, 0x0000000000000002, 0x0000000000000003, 0x0000000000000004, 0x0000000000000005 and 2 more; the engine chooses the top of its order itself",
		"0x0002c90000000001": "1 ERR IBW1: no switch of roots in FILE is in the subnet: 0x0002c90000000001; the engine chooses the top of its order itself",
	} {
		o := open(t, "roots: ["+strings.ReplaceAll(strings.ReplaceAll(roots, "1,2,3,4,5,6,7", "0x1,0x2,0x3,0x4,0x5,0x6,0x7"), ",", ", ")+"]")
		for _, s := range []*Snapshot{whole, damaged, whole} {
			short.Must(o.Route(o.engine("updn"), s))(t)
		}
		want = strings.ReplaceAll(want, "FILE", filepath.Join(o.dir, "ibweave.yaml"))
		if got := strings.Join(o.lines, "\n"); got != want {
			t.Errorf("roots %s: OpenSM's log has\n%s\nwant\n%s", roots, got, want)
		}
		if log := o.ownLog(t); want != "" && strings.Count(log, "in the subnet") != 1 {
			t.Errorf("our log has\n%s", log)
		}
	}
	// Others are missing, and then none, and then the first again.
	o := open(t, "roots: ["+there+", 0x200001]")
	one, other := snapshotOf(f, rnd), snapshotOf(f, rnd)
	rename(one, f.Node(0).GUID, 0x77)
	rename(other, 0x200001, 0x77)
	for _, s := range []*Snapshot{one, one, other, whole, one} {
		short.Must(o.Route(o.engine("updn"), s))(t)
	}
	if len(o.lines) != 3 || o.lines[0] != o.lines[2] || o.lines[0] == o.lines[1] {
		t.Errorf("OpenSM's log has %q", o.lines)
	}
}

// rename gives a node of a snapshot another GUID.
func rename(s *Snapshot, from, to fabric.GUID) {
	for i := range s.Nodes {
		if s.Nodes[i].GUID == from {
			s.Nodes[i].GUID, s.Ports[s.Nodes[i].First].GUID = to, to
		}
	}
}
