package ibsim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// OpenSMConfig tells how to run OpenSM.
type OpenSMConfig struct {
	// Program is opensm, by default the one on $PATH.
	Program string
	// Engine is the argument of -R: "updn", "file", "ftree,no_fallback". Empty
	// leaves OpenSM its default, which is minhop.
	Engine string
	// Dir is the folder for everything that OpenSM writes: the dumps, and
	// its cache in Dir/cache. It is created if needed. The default is the
	// folder opensm in the Sim's.
	//
	// When it starts, OpenSM takes LIDs from the guid2lid in its cache. (Option
	// honor_guid2lid_file matters only when it comes out of standby.) Ports
	// that are not in guid2lid keep their LIDs if they can (osm_lid_mgr.c).
	Dir string
	// LFTs and LIDMatrix are the files for -U and -M; empty for none.
	LFTs, LIDMatrix string
	// LMC is that of all ports of CAs and routers, and of
	// enhanced ports 0 of switches if LMCPort0 is set.
	LMC      uint8
	LMCPort0 bool
	// Options are further lines for opensm.conf: "qos TRUE".
	Options []string
	// Files has the texts of files that an option of
	// opensm.conf names, by option: "root_guid_file".
	Files map[string][]byte
	// Env has further variables of its environment, "NAME=value".
	Env []string
	// Flags are OpenSM's log flags (-D), 0x03 when 0. With 0x40 it writes
	// dumps of its tables.
	Flags uint8
	// Timeout is how long it may take to bring the subnet up, by default ten minutes.
	Timeout time.Duration
	// Line, if set, is called for each line of the log, by one goroutine.
	Line func(LogLine)
}

// OpenSMRun is the outcome of a run of OpenSM.
type OpenSMRun struct {
	Version   string   // "3.3.23"
	Engine    string   // the engine whose tables were configured, "" if none was
	UP        bool     // SUBNET UP
	Errors    []string // the first messages of level 0x01, at most maxErrors
	NumErrors int      // number of all of them
	Dir       string   // with the dumps
}

const maxErrors = 20

// ErrNotUp means that OpenSM ended, or was ended, without SUBNET UP.
var ErrNotUp = errors.New("OpenSM did not bring the subnet up")

// exitTime is how long RunOpenSM waits for OpenSM to end by itself.
const exitTime = 5 * time.Second

// RunOpenSM runs OpenSM as StartOpenSM does, and ends it when it has brought the
// subnet up. The run is nil if OpenSM did not start. Errors are those of StartOpenSM.
func RunOpenSM(ctx context.Context, s *Sim, cfg OpenSMConfig) (*OpenSMRun, error) {
	o, err := StartOpenSM(ctx, s, cfg)
	if err == nil {
		// A plugin then writes the rest of its log. libumad2sim may hang when OpenSM exits.
		_ = o.Process.Signal(syscall.SIGTERM)
		select {
		case <-o.Done:
		case <-time.After(exitTime):
		}
		err = o.Stop()
	}
	if o == nil || err != nil && o.run.Version == "" {
		return nil, err
	}
	return &o.run, err
}

// withComplaint adds OpenSM's last error message to an ErrNotUp.
func (r *OpenSMRun) withComplaint(err error) error {
	if errors.Is(err, ErrNotUp) && len(r.Errors) > 0 {
		return fmt.Errorf("%w: %s", err, r.Errors[len(r.Errors)-1])
	}
	return err
}

// prepareOpenSM makes the folder, the options and the command of
// OpenSM. It sets the defaults of cfg, and makes Dir absolute.
func prepareOpenSM(ctx context.Context, s *Sim, cfg *OpenSMConfig) (cmd *exec.Cmd, err error) {
	cfg.Program = cmp.Or(cfg.Program, "opensm")
	cfg.Flags = cmp.Or(cfg.Flags, 0x03)
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Minute)
	cfg.Dir = cmp.Or(cfg.Dir, filepath.Join(s.dir, "opensm"))
	// OpenSM runs in another folder.
	for _, name := range []*string{&cfg.Dir, &cfg.LFTs, &cfg.LIDMatrix} {
		if *name != "" {
			if *name, err = filepath.Abs(*name); err != nil {
				return nil, err
			}
		}
	}
	cache := filepath.Join(cfg.Dir, "cache")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	for _, option := range slices.Sorted(maps.Keys(cfg.Files)) {
		name := filepath.Join(cfg.Dir, option+".conf")
		if err := os.WriteFile(name, cfg.Files[option], 0o600); err != nil {
			return nil, err
		}
		cfg.Options = append(cfg.Options, option+" "+name)
	}
	conf := filepath.Join(cfg.Dir, "opensm.conf")
	if err := os.WriteFile(conf, []byte(openSMConf(*cfg)), 0o600); err != nil {
		return nil, err
	}
	// OpenSM's log is our pipe, which we read as it grows. The
	// plugin puts its own log beside it.
	log := filepath.Join(cfg.Dir, "opensm.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Symlink("/dev/stdout", log); err != nil {
		return nil, err
	}
	args := []string{"-F", conf, "-D", fmt.Sprintf("%#x", cfg.Flags)}
	for _, opt := range []struct{ flag, value string }{{"-R", cfg.Engine}, {"-U", cfg.LFTs}, {"-M", cfg.LIDMatrix}} {
		if opt.value != "" {
			args = append(args, opt.flag, opt.value)
		}
	}
	cmd = s.Command(ctx, cfg.Program, args...)
	cmd.Env = append(append(cmd.Env, "OSM_TMP_DIR="+cfg.Dir, "OSM_CACHE_DIR="+cache), cfg.Env...)
	return cmd, nil
}

// qosPolicy is where OpenSM looks for its QoS policies. With qos TRUE it does not
// complain if this file is missing, but logs ERR AC01 if one in another place is.
// A file of ours would have to state the default SL, which the engine sets.
const qosPolicy = "/etc/opensm/qos-policy.conf"

// openSMConf makes the file of options. For files that OpenSM would
// take from /etc/opensm, it names files in cfg.Dir, which do not exist.
func openSMConf(cfg OpenSMConfig) string {
	var b strings.Builder
	option := func(name, value string) { fmt.Fprintf(&b, "%s %s\n", name, value) }
	file := func(name, base string) { option(name, filepath.Join(cfg.Dir, base)) }
	file("log_file", "opensm.log")
	option("dump_files_dir", cfg.Dir)
	file("partition_config_file", "partitions.conf")
	if _, err := os.Stat(qosPolicy); err == nil {
		file("qos_policy_file", "qos-policy.conf")
	}
	file("prefix_routes_file", "prefix-routes.conf")
	file("per_module_logging_file", "per-module-logging.conf")
	file("torus_config", "torus-2QoS.conf")
	option("lmc", strconv.Itoa(int(cfg.LMC)))
	option("lmc_esp0", strings.ToUpper(strconv.FormatBool(cfg.LMCPort0)))
	// Packets may be late on a busy machine: OpenSM must not take them for lost.
	option("long_transaction_timeout", "2000")
	option("transaction_timeout", "1000")
	for _, line := range cfg.Options {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// LogLine is a line of OpenSM's log.
type LogLine struct {
	Level   uint8 // log flag of the message
	Message string
}

// logLine is a line as osm_log.c writes it. Other lines belong to the message before.
//
//	Nov 21 04:08:19 209755 [2D14D740] 0x03 -> OpenSM 3.3.23
var logLine = regexp.MustCompile(`^[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \d{6} \[[0-9A-F]+\] 0x([0-9a-f]{2}) -> ((?s:.*))$`)

func parseLogLine(line []byte) (l LogLine, ok bool) {
	parts := logLine.FindSubmatch(line)
	if parts == nil {
		return l, false
	}
	level, err := strconv.ParseUint(string(parts[1]), 16, 8)
	return LogLine{uint8(level), string(parts[2])}, err == nil
}

// logWatch reads OpenSM's log as it grows.
type logWatch struct {
	run      *OpenSMRun
	each     func(LogLine)
	hopeless bool // OpenSM would try again for ever

	lines lineCutter
}

const levelError = 0x01

// upMessage is OpenSM's log message at the end of each sweep that has brought
// the subnet up (osm_state_mgr.c).
const upMessage = "SUBNET UP"

// newLogWatch returns a reader of OpenSM's log that updates
// run, and calls each, if it is not nil, with each line.
func newLogWatch(run *OpenSMRun, each func(LogLine)) *logWatch {
	w := &logWatch{run: run, each: each}
	w.lines.each = w.line
	return w
}

// takeLastLine handles a last line without an end.
func (w *logWatch) takeLastLine() {
	if len(w.lines.partial) > 0 {
		w.line(w.lines.partial)
	}
}

func (w *logWatch) line(text []byte) {
	l, ok := parseLogLine(text)
	if !ok {
		return
	}
	if w.each != nil {
		w.each(l)
	}
	run := w.run
	if version, ok := strings.CutPrefix(l.Message, "OpenSM "); ok {
		// The banner is no error, though its level has all flags.
		run.Version = version
		return
	}
	switch {
	case strings.HasSuffix(l.Message, "since we are exiting"), // an answer that came after its SIGTERM,
		strings.HasSuffix(l.Message, "failed (IB_INSUFFICIENT_RESOURCES)"): // or a request after it (osm_req.c)
	case l.Level == levelError:
		if run.NumErrors++; run.NumErrors <= maxErrors {
			run.Errors = append(run.Errors, l.Message)
		}
		// The next sweep would fail likewise; a run "once" ends only with success.
		if strings.Contains(l.Message, "No routing engine able to successfully configure") {
			w.hopeless = true
		}
	case l.Message == upMessage:
		run.UP = true
	case strings.HasSuffix(l.Message, " tables configured on all switches"):
		words := strings.Fields(l.Message)
		if len(words) > 5 {
			run.Engine = words[len(words)-6]
		}
	}
}
