package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

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
