package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

var sequences = flag.Int("sequences", 0, "sequences of TestFileChaos and TestChaosSequences, 0 for a few")

// Whatever becomes of the files that the plugin reads and writes, OpenSM lives, ends its
// sweeps, and has tables in the switches by which all that is connected is reached: those
// of our engine where the plugin could begin, and those of OpenSM's own else.
func TestFileChaos(t *testing.T) {
	c := chaosCase{"files", "ibweave-updn,updn", "", nil, compile.Options{}, func() (*fabric.Fabric, error) {
		return gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	}}.begin(t)
	c.groups = c.groups[:2]
	f := newFileChaos(c)
	defer func() {
		f.calm()
		if c.o != nil {
			_ = c.o.Stop()
		}
	}()
	start := time.Now()
	slowest := time.Duration(0)
	all := cmp.Or(*sequences, 20)
	for i := range all {
		f.begin(i%10 == 5)
		for range 3 {
			for range 1 + c.rnd.IntN(2) {
				f.change(one(c.rnd, f.all), true)
			}
			if c.rnd.IntN(2) == 0 {
				if p := one(c.rnd, c.cables); c.down[p] {
					c.mend(p)
				} else if c.f.IsSwitch(c.f.Owner(p)) && c.f.IsSwitch(c.f.Owner(c.f.Peer(p))) && len(c.down) == 0 {
					c.cut(p, "Unlink")
				}
			}
			step := time.Now()
			c.settle()
			slowest = max(slowest, time.Since(step))
			f.check()
		}
		c.history = nil
	}
	t.Logf("%d sequences, %d conditions %v, %d sweeps, in %v; the slowest step took %v, OpenSM had at most %d KiB; routed by %v",
		all, f.changes, c.kinds, c.sweeps, time.Since(start).Round(time.Millisecond), slowest.Round(time.Millisecond), f.largest, c.engines)
	if c.engines["ibweave-updn"] == 0 || c.engines["updn"] == 0 {
		t.Errorf("routed by %v, want both engines", c.engines)
	}
}

// fileChaos is files that do not stay as they are.
type fileChaos struct {
	c       *chaos
	all     []string          // "config", ..
	names   map[string]string // of the files
	good    map[string][]byte // what is in them when all is well
	now     map[string]string // the conditions that they are in
	wants   string            // OpenSM's name of the engine, "" when it may be either
	program string            // OpenSM, which has a small disk of its own
	disk    string
	changes int
	largest int // KiB, what OpenSM had at most

	stop chan struct{} // ends what disturbs files in the background
	busy sync.WaitGroup
	held []int // descriptors of fanotify
}

func newFileChaos(c *chaos) *fileChaos {
	c.t.Helper()
	f := &fileChaos{c: c, all: []string{"config", "groups", "guid2lid", "log"}, names: map[string]string{}, good: map[string][]byte{},
		now: map[string]string{}, disk: filepath.Join(c.dir, "disk"), program: filepath.Join(c.dir, "opensm.sh"), stop: make(chan struct{})}
	c.files = f
	for what, name := range map[string]string{"config": "config/ibweave.yaml", "groups": "groups/groups.json", "guid2lid": "groups/guid2lid", "log": "log/ibweave.log"} {
		f.names[what] = filepath.Join(c.dir, name)
	}
	f.good["config"] = fmt.Appendf(nil, "multicast: {groups: %s}\nlog: {file: %s, level: debug}\n", f.names["groups"], f.names["log"])
	r := c.compiled(c.t, "updn", compile.Options{Groups: func(g *fabric.Fabric) ([]mft.Group, error) { return groupsOn(g), nil }})
	groups := short.Must(mft.AppendGroupsJSON(nil, c.f, r.Plan.Trees))(c.t)
	var lids bytes.Buffer
	short.Check(c.t, dump.WriteGUID2LID(&lids, c.f))
	f.good["groups"], f.good["guid2lid"], f.good["log"] = groups, lids.Bytes(), []byte("an older line\n")
	// The disk is in a mount namespace of OpenSM's, so it is gone with it. Who may not have
	// one has no full disk.
	script := fmt.Sprintf("#!/bin/sh\nunshare %[1]s true || exec opensm \"$@\"\nexec unshare %[1]s sh -c 'mount -t tmpfs -o size=8k none %[2]s && exec opensm \"$@\"' opensm \"$@\"\n",
		map[bool]string{true: "-m", false: "-rm"}[os.Getuid() == 0], f.disk)
	short.Check(c.t, errors.Join(os.Mkdir(f.disk, 0o700), os.WriteFile(f.program, []byte(script), 0o700)))
	return f
}

const hangs = "hangs"

// conditions make files; some go on until they are to stop.
var conditions = map[string]func(f *fileChaos, what, name string) error{
	"good": func(f *fileChaos, what, name string) error { return os.WriteFile(name, f.good[what], 0o600) },
	"huge": func(_ *fileChaos, _, name string) error {
		return os.WriteFile(name, bytes.Repeat([]byte(" "), 40<<20), 0o600)
	},
	"sparse": func(_ *fileChaos, _, name string) error {
		return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 8<<30))
	},
	"bomb": func(_ *fileChaos, _, name string) error {
		return os.WriteFile(name, bytes.Repeat([]byte("["), 1<<20-1), 0o600)
	},
	"FIFO":      func(_ *fileChaos, _, name string) error { return unix.Mkfifo(name, 0o600) },
	"directory": func(_ *fileChaos, _, name string) error { return os.Mkdir(name, 0o700) },
	"vanished":  func(*fileChaos, string, string) error { return nil },
	"loop":      func(_ *fileChaos, _, name string) error { return os.Symlink(name, name) },
	"device":    func(_ *fileChaos, _, name string) error { return os.Symlink("/dev/zero", name) },
	"full":      func(f *fileChaos, what, name string) error { return os.Symlink(filepath.Join(f.disk, what), name) },
	// The address 0 of OpenSM's memory, which cannot be read.
	"unreadable": func(_ *fileChaos, _, name string) error { return os.Symlink("/proc/self/mem", name) },
	"torn": func(f *fileChaos, what, name string) error {
		return os.WriteFile(name, f.good[what][:len(f.good[what])/2], 0o600)
	},
	"not a folder": func(_ *fileChaos, _, name string) error {
		dir := filepath.Dir(name)
		return errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600))
	},
	"no folder": func(_ *fileChaos, _, name string) error {
		return os.Rename(filepath.Dir(name), filepath.Dir(name)+".away")
	},
	"vanishing": func(f *fileChaos, what, name string) error {
		f.background(func() error {
			return errors.Join(os.WriteFile(name, f.good[what], 0o600), os.Remove(name))
		})
		return nil
	},
	"rotated": func(f *fileChaos, what, name string) error {
		f.background(func() error {
			return errors.Join(os.WriteFile(name+".new", f.good[what], 0o600), os.Rename(name+".new", name))
		})
		return os.WriteFile(name, f.good[what], 0o600)
	},
	"growing": func(f *fileChaos, what, name string) error {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		size := 0
		f.background(func() error {
			block := bytes.Repeat([]byte("# a line\n"), 1<<12)
			if size += len(block); size > 64<<20 {
				size = 0
				return file.Truncate(0)
			}
			_, err := file.Write(block)
			return err
		})
		return nil
	},
	// As on a file server that is dead: who opens the file, or reads it, waits.
	hangs: func(f *fileChaos, what, name string) error {
		if err := os.WriteFile(name, f.good[what], 0o600); err != nil {
			return err
		}
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
		if err != nil {
			return err
		}
		f.held = append(f.held, fd)
		return unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM|unix.FAN_ACCESS_PERM, unix.AT_FDCWD, name)
	},
}

// background does something again and again.
func (f *fileChaos) background(do func() error) {
	stop := f.stop
	f.busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if do() != nil {
				return // its folder has gone
			}
		}
	})
}

// calm ends what goes on in the background.
func (f *fileChaos) calm() {
	close(f.stop)
	f.busy.Wait()
	f.stop = make(chan struct{})
	for _, fd := range f.held {
		_ = unix.Close(fd) // who waits for it goes on
	}
	f.held = nil
}

// change brings a file into another condition, and the others back into theirs.
func (f *fileChaos) change(what string, mayHang bool) {
	f.c.t.Helper()
	list := slices.Sorted(maps.Keys(conditions))
	kind := one(f.c.rnd, list)
	if f.c.rnd.IntN(3) == 0 {
		kind = "good"
	}
	// Only root can have others wait, and once in a sequence is enough.
	if kind == hangs && (!mayHang || os.Getuid() != 0 || slices.Contains(slices.Collect(maps.Values(f.now)), hangs)) {
		kind = "FIFO"
	}
	f.now[what] = kind
	f.changes++
	f.c.kinds[kind]++
	f.make()
}

// make makes all files.
func (f *fileChaos) make() {
	f.c.t.Helper()
	f.calm()
	for _, dir := range []string{"config", "groups", "log"} {
		for _, name := range []string{dir, dir + ".away"} {
			short.Check(f.c.t, os.RemoveAll(filepath.Join(f.c.dir, name)))
		}
		short.Check(f.c.t, os.Mkdir(filepath.Join(f.c.dir, dir), 0o700))
	}
	// Those that take the folder away come last.
	list := slices.Clone(f.all)
	slices.SortStableFunc(list, func(a, b string) int {
		return strings.Count(f.now[a], "folder") - strings.Count(f.now[b], "folder")
	})
	for _, what := range list {
		name := f.names[what]
		if _, err := os.Stat(filepath.Dir(name)); err != nil || f.now[what] == "" || isFile(filepath.Dir(name)) {
			continue // groups and guid2lid have one
		}
		if err := conditions[f.now[what]](f, what, name); err != nil {
			f.c.t.Fatalf("%s %s: %v", what, f.now[what], err)
		}
	}
	f.c.history = append(f.c.history, fmt.Sprintf("# files %v", f.now))
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// begin ends OpenSM and starts another.
func (f *fileChaos) begin(mayHang bool) {
	c := f.c
	c.t.Helper()
	for _, what := range f.all {
		f.now[what] = "good"
	}
	if c.rnd.IntN(2) == 0 {
		for range 1 + c.rnd.IntN(2) {
			f.change(one(c.rnd, f.all), mayHang)
		}
	}
	f.make()
	f.wants = "ibweave-updn"
	for _, what := range []string{"config", "groups", "guid2lid"} {
		switch f.now[what] {
		case "good", "rotated":
		case "vanishing", "growing", "torn", "full":
			f.wants = "" // it depends
		default:
			f.wants = "updn"
		}
		if f.wants != "ibweave-updn" {
			break
		}
	}
	if c.o != nil {
		if err := c.o.Stop(); err != nil {
			c.fail("OpenSM has ended: %v", err)
		}
	}
	c.mu.Lock()
	c.failed = nil
	c.mu.Unlock()
	c.startOpenSM()
	c.mayBeForgotten()
	if c.client == nil {
		c.dial()
	}
	c.settle()
	f.check()
}

// compare says whether OpenSM uses the engine that it should.
func (f *fileChaos) compare(engine string) error {
	if f.wants == "" {
		f.wants = engine // it stays
	}
	if engine != f.wants {
		return fmt.Errorf("OpenSM used %s, want %s; files %v", engine, f.wants, f.now)
	}
	return nil
}

// check looks at what the plugin has said, and at OpenSM's size.
func (f *fileChaos) check() {
	c := f.c
	c.t.Helper()
	c.mu.Lock()
	lines := c.failed
	c.failed = nil
	c.mu.Unlock()
	count := make(map[string]int)
	for _, line := range lines {
		code, _, _ := strings.Cut(strings.TrimPrefix(line, "ibweave: ERR "), ":")
		if count[code]++; code != "IBW1" && code != "IBW9" || !strings.Contains(line, c.dir) || len(line) > 2100 {
			c.fail("the plugin says %s", line)
		}
	}
	// A file that changes all the time may be wrong in another way at each sweep.
	if count["IBW9"] > 1 || count["IBW1"] > 8 {
		c.fail("the plugin says %q", lines)
	}
	f.largest = max(f.largest, statusKiB(c.t, c.o.Process.Pid, "VmHWM"))
	if f.largest > maxWithFiles {
		c.fail("OpenSM had %d KiB; files %v", f.largest, f.now)
	}
}

// maxWithFiles bounds OpenSM's memory, in KiB: a groups.json as large as it may be takes
// eight times its size while it is parsed.
const maxWithFiles = 300 << 10
