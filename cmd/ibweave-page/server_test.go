package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric/gen"
)

// TestAnswers: what can be done has a document and arrays, what cannot says why.
func TestAnswers(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2})
	if err != nil {
		t.Fatal(err)
	}
	e, err := compile.EngineByName("updn")
	if err != nil {
		t.Fatal(err)
	}
	base, err := compile.Run(context.Background(), f, e, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := session.Encode(e, base.Routing)
	if err != nil {
		t.Fatal(err)
	}
	leaf := f.Node(0).GUID
	ports, _ := f.SwitchLinks(0)
	cable := fmt.Sprintf("%s:%d", leaf, f.Num(ports[0]))
	var s server
	for _, tt := range []struct {
		request string
		parts   int
		err     string
		steps   []string
	}{
		{"undo", 1, "nothing is open", nil},
		{"open nonsense", 1, "packed tables: invalid character 'o' in literal null (expecting 'u')", nil},
		{"open " + string(data), 3, "", []string{}},
		{"export", 1, "there are no steps yet", nil},
		{"do fail " + cable, 3, "", []string{"fail " + cable}},
		{"do fail " + cable, 1, "", []string{"fail " + cable}}, // an answer that refuses
		{"do fail", 1, `"fail": want fail, drain or restore and GUID or GUID:PORT, slow GUID:PORT RATE, or recable GUID:PORT GUID:PORT`, nil},
		{"export", 1, "", []string{"fail " + cable}},
		{"undo", 3, "", []string{}},
		{"sing", 1, `"sing": want open, do, undo or export`, nil},
	} {
		parts := s.answer([]byte(tt.request))
		var r reply
		if err := json.Unmarshal(parts[0], &r); err != nil {
			t.Fatal(err)
		}
		if len(parts) != tt.parts || r.Error != tt.err || !cmp.Equal(r.Steps, tt.steps) {
			t.Errorf("%.40s: %d parts, %q, %q; want %d, %q, %q", tt.request, len(parts), r.Error, r.Steps, tt.parts, tt.err, tt.steps)
		}
	}
}
