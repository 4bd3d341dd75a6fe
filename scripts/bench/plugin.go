package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ibweave/ibweave/sminterface/ibsim"
)

//go:embed floor/floor.c
var floorSource []byte

// stage is how long one of our callbacks' stages took in each run.
type stage struct {
	name string
	took []time.Duration
}

// plugin has OpenSM route a fat tree with its own updn, with our plugin's, and with the
// engine that does nothing, in turn.
//
// The time inside our callbacks is what the plugin logs: all of it from when OpenSM
// calls until the callback returns, and the stages snapshot, route, verify, and write.
func (b *bench) plugin(ctx context.Context, which string) error {
	twin, err := b.twin(ctx, which)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ibweave-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	library, err := filepath.Abs(b.library)
	if err != nil {
		return err
	}
	if err := buildFloor(ctx, filepath.Join(dir, "libibweave-floor.so")); err != nil {
		return err
	}
	config, log := filepath.Join(dir, "ibweave.yaml"), filepath.Join(dir, "ibweave.log")
	if err := os.WriteFile(config, fmt.Appendf(nil, "log:\n  file: %s\n  format: json\n", log), 0o600); err != nil {
		return err
	}
	path := []string{"LD_LIBRARY_PATH=" + dir + string(os.PathListSeparator) + filepath.Dir(library)}
	updn := ibsim.OpenSMConfig{Engine: "updn", Flags: 0x07}
	ours := ibsim.OpenSMConfig{Engine: "ibweave-updn", Flags: 0x07, Env: path,
		Options: []string{"event_plugin_name ibweave-opensm", "event_plugin_options --config " + config}}
	floor := ibsim.OpenSMConfig{Engine: "ibweave-floor", Flags: 0x07, Env: path, Options: []string{"event_plugin_name ibweave-floor"}}
	var theirs, all, nothing []time.Duration
	stages := []stage{{name: "total"}, {name: "snapshot"}, {name: "route"}, {name: "verify"}, {name: "write"}}
	for range b.runs {
		for _, of := range []struct {
			cfg  ibsim.OpenSMConfig
			took *[]time.Duration
		}{{updn, &theirs}, {ours, &all}, {floor, &nothing}} {
			t, err := openSM(ctx, twin, of.cfg)
			if err != nil {
				return err
			}
			*of.took = append(*of.took, t)
		}
		if err := readStages(log, stages); err != nil {
			return err
		}
	}
	b.row("OpenSM updn", theirs)
	b.row("OpenSM, ibweave-updn", all)
	b.row("OpenSM, engine without work", nothing)
	for _, s := range stages {
		b.row("inside our callbacks, "+s.name, s.took)
	}
	b.ratio(theirs, stages[0].took)
	return nil
}

// buildFloor makes the plugin that does nothing.
func buildFloor(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "gcc", "-I/usr/include/infiniband", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-x", "c", "-", "-o", to)
	cmd.Stdin = strings.NewReader(string(floorSource))
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc, with libopensm-dev's headers: %w\n%s", err, said)
	}
	return nil
}

// readStages appends to each stage what the plugin's log has of its one routing,
// and ends the log.
func readStages(log string, stages []stage) error {
	data, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return err
		}
		if entry["msg"] != "routed" {
			continue
		}
		for i := range stages {
			text, _ := entry[stages[i].name].(string)
			took, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", stages[i].name, line, err)
			}
			stages[i].took = append(stages[i].took, took)
		}
		return os.Truncate(log, 0)
	}
	return errors.New("the plugin has not routed: " + string(data))
}
