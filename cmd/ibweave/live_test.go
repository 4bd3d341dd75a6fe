package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/sminterface/umad"
)

// TestLive runs the command lines of testdata/live against the real ibsim.
// Beyond the commands of TestScript there are
//
//	ibsim FILE         runs ibsim on a fabric, as the one that the environment names
//	opensm [OPTION]    runs OpenSM on it, with a line of opensm.conf
//	tool FILE ARG..    runs a program that uses libibumad, with its output into FILE
//	console COMMAND    gives ibsim's console a command
//
// PLUGIN is OpenSM's plugin.
func TestLive(t *testing.T) {
	short.NeedPrograms(t)
	type key struct{}
	plugin, err := built.Program(rehearse.LibraryName, "../ibweave-opensm", "-tags", "opensm", "-buildmode=c-shared", "-ldflags=-w")
	if err != nil {
		t.Fatalf("the plugin cannot be built; on Debian and Ubuntu, apt install libopensm-dev libibumad-dev gcc:\n%v", err)
	}
	sim := func(ts *testscript.TestScript) *ibsim.Sim {
		s := *ts.Value(key{}).(**ibsim.Sim)
		if s == nil {
			ts.Fatalf("no ibsim runs: ibsim FILE comes first")
		}
		return s
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts(t, "testdata/live/*.txtar"),
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Values[key{}] = new(*ibsim.Sim)
			e.Setenv("IBWEAVE", program)
			e.Setenv("PLUGIN", plugin)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ibweave": func(ts *testscript.TestScript, neg bool, args []string) {
				status(ts, neg, append([]string{"0", "ibweave"}, args...))
			},
			"status":  status,
			"json":    wantJSON,
			"nojson":  wantNoJSON,
			"replace": replace,
			"ibsim": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: ibsim FILE")
				}
				f, _, err := topology.Parse(args[0], []byte(ts.ReadFile(args[0])), topology.Options{})
				ts.Check(err)
				twin, err := ibsim.NewTwin(f)
				ts.Check(err)
				s, err := ibsim.StartTwin(context.Background(), twin, ibsim.Config{})
				ts.Check(err)
				ts.Defer(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				// It listens when a client has been taken.
				c, err := s.Dial(context.Background(), "")
				ts.Check(err)
				ts.Check(c.Close())
				ts.Setenv("IBSIM_SOCKNAME", s.Socket())
				ts.Setenv("SIM_HOST", twin.NodeID(ibsim.Centre(twin.Fabric)))
				*ts.Value(key{}).(**ibsim.Sim) = s
			},
			"opensm": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg {
					ts.Fatalf("usage: opensm [OPTION]")
				}
				o, err := ibsim.StartOpenSM(context.Background(), sim(ts), ibsim.OpenSMConfig{Dir: ts.MkAbs("opensm"), Options: args,
					Env: []string{"LD_LIBRARY_PATH=" + filepath.Dir(plugin)}})
				ts.Check(err)
				ts.Defer(func() {
					if err := o.Stop(); err != nil {
						t.Error(err)
					}
				})
			},
			"tool": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: tool FILE PROGRAM [ARG..]")
				}
				var out bytes.Buffer
				cmd := sim(ts).Command(context.Background(), args[1], args[2:]...)
				cmd.Stdout = &out
				ts.Check(sim(ts).Run(context.Background(), cmd))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o666))
			},
			"console": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: console COMMAND")
				}
				ts.Check(sim(ts).Console(context.Background(), args[0], nil))
			},
		},
	})
}

// The table of devices has what --umad takes.
func TestDeviceTable(t *testing.T) {
	var b text.Sheet
	deviceTable(&b, []umad.PortInfo{
		{Device: "mlx5_0", Number: 1, GUID: 0x2c90300a10101, LID: 17, SMLID: 3, State: "ACTIVE", LinkLayer: "InfiniBand", Rate: "100 Gb/sec (4X EDR)", Umad: "umad0", Netdevs: []string{"ib0", "ib0.8001"}},
		{Device: "roce_0", Number: 1, LinkLayer: "Ethernet"},
	})
	want := `PORT      GUID                LID  SM LID  STATE   LINK        RATE                 UMAD   NETDEV
mlx5_0:1  0x0002c90300a10101  17   3       ACTIVE  InfiniBand  100 Gb/sec (4X EDR)  umad0  ib0,ib0.8001
roce_0:1  0x0000000000000000  0    0       -       Ethernet    -                    -      -
`
	short.Equal(t, b.String(), want)
}

// A machine without RDMA is told so, in one line.
func TestNoDevices(t *testing.T) {
	list, err := umad.List()
	want := exitClean
	if errors.Is(err, umad.ErrNoDevices) {
		want = exitEnvironment
	}
	var out, errs bytes.Buffer
	if got := run([]string{"devices"}, strings.NewReader(""), &out, &errs); got != want {
		t.Errorf("devices: exit status %d, want %d for %v: %s", got, want, list, &errs)
	}
	if want == exitClean {
		return
	}
	for _, args := range [][]string{{"devices"}, {"discover", "--umad", "mlx5_0:1"}, {"pull", "--umad", "ib0", "-o", t.TempDir()}} {
		out.Reset()
		errs.Reset()
		const text = "ibweave: this machine has no RDMA device: the kernel lists none in /sys/class/infiniband\n"
		if got := run(args, strings.NewReader(""), &out, &errs); got != exitEnvironment || errs.String() != text || out.Len() > 0 {
			t.Errorf("%v: exit status %d, %s%s", args, got, &out, &errs)
		}
	}
}

// TestPrometheus has the real Prometheus scrape what check writes, and asks it for the verdict.
func TestPrometheus(t *testing.T) {
	short.NeedAll(t)
	audit := short.Must(filepath.Abs("../../examples/audit"))(t)
	t.Parallel() // it waits five seconds for its first scrape
	out, err := exec.Command(program, "check", "-t", filepath.Join(audit, "opensm-subnet.lst"), "--lfts", filepath.Join(audit, "opensm-lfts.dump"), "--format", "prometheus").Output()
	if len(out) == 0 {
		t.Fatal(err)
	}
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Write(out)
	}))
	defer metrics.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("scrape_configs:\n- job_name: ibweave\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\n  - targets: [%q]\n", metrics.Listener.Addr())
	file := filepath.Join(dir, "prometheus.yml")
	short.Check(t, os.WriteFile(file, []byte(config), 0o666))
	free := short.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	free.Close()
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	log := short.Must(os.Create(filepath.Join(dir, "log")))(t)
	cmd.Stdout, cmd.Stderr = log, log
	short.Check(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	short.Await(t, func() bool {
		return askPrometheus(address, `ibweave_check_verdict{verdict="errors",job="ibweave"}`) == "1"
	}, "Prometheus has no verdict")
	if rules := askPrometheus(address, `sum(ibweave_check_findings{severity="error"})`); rules == "" || rules == "0" {
		t.Errorf("%q errors", rules)
	}
}

// askPrometheus is the value of a query with one sample, "" while there is none.
func askPrometheus(address, query string) string {
	r, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
