package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// packed is a small fabric with tables for a session, and one of its cables.
func packed(t *testing.T) (data []byte, cable string) {
	t.Helper()
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	e := short.Must(compile.EngineByName("updn"))(t)
	base := short.Must(compile.Run(context.Background(), f, e, compile.Options{}))(t)
	data = short.Must(session.Encode(e, base.Routing))(t)
	ports, _ := f.SwitchLinks(0)
	return data, fmt.Sprintf("%s:%d", f.Node(0).GUID, f.Num(ports[0]))
}

// TestFailures: wherever an answer fails, the session has the steps that the page shows.
func TestFailures(t *testing.T) {
	data, cable := packed(t)
	s := new(server)
	s.answer([]byte("open " + string(data)))
	leaf, _, _ := strings.Cut(cable, ":") // whose failure has the loads counted again, after the step
	failed := 0
	for n := int32(0); ; n++ {
		ctx := &short.Ending{Context: context.Background()}
		ctx.Left.Store(n)
		if _, err := s.handle(ctx, []byte("do fail "+leaf)); err == nil {
			break
		}
		failed++
		if steps := s.session.Steps(); len(steps) > 0 {
			t.Fatalf("failed after %d: the steps are %q", n, steps)
		}
	}
	if steps := s.session.Steps(); failed < 2 || len(steps) != 1 {
		t.Errorf("failed %d times, then the steps are %q", failed, steps)
	}
}

// TestAnswers: what can be done has a document and arrays, what cannot says why.
func TestAnswers(t *testing.T) {
	data, cable := packed(t)
	var s server
	for _, tt := range []struct {
		request string
		parts   int
		err     string
		steps   []string
	}{
		{"undo", 1, "nothing is open", nil},
		{"open nonsense", 1, "packed tables: invalid character 'o' in literal null (expecting 'u')", nil},
		{"open " + string(data), 1, "", []string{}},
		{"map", 3, "", nil},
		{"export", 1, "there are no steps yet", nil},
		{"do fail " + cable, 3, "", []string{"fail " + cable}},
		{"do fail " + cable, 1, "", []string{"fail " + cable}}, // an answer that refuses
		{"do fail", 1, `"fail": want fail, drain or restore and GUID or GUID:PORT, slow GUID:PORT RATE, or recable GUID:PORT GUID:PORT`, nil},
		{"export", 1, "", []string{"fail " + cable}},
		{"undo", 3, "", []string{}},
		{"sing", 1, `"sing": want open, do, undo, export, map or prepare`, nil},
	} {
		parts := s.answer([]byte(tt.request))
		var r reply
		short.Check(t, json.Unmarshal(parts[0], &r))
		if len(parts) != tt.parts || r.Error != tt.err || !cmp.Equal(r.Steps, tt.steps) {
			t.Errorf("%.40s: %d parts, %q, %q; want %d, %q, %q", tt.request, len(parts), r.Error, r.Steps, tt.parts, tt.err, tt.steps)
		}
	}
}
