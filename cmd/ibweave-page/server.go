// Command ibweave-page is the compiler in the page of ibweave report --interactive. Built with
// GOOS=wasip1 GOARCH=wasm -buildmode=c-shared it is a WebAssembly module; a worker of the
// page calls its exported functions. docs/report.md describes the page.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// server answers what the page asks.
type server struct {
	session *session.Session
}

// reply is the first part of an answer, as JSON. If the page has to
// show other tables, their document and arrays follow as further parts.
type reply struct {
	Error  string          `json:"error,omitempty"`
	Answer *session.Answer `json:"answer,omitempty"` // to a step
	Export *session.Export `json:"export,omitempty"`
	Steps  []string        `json:"steps"`
	// Drained lists what is drained now, as steps name it.
	Drained []string `json:"drained,omitempty"`
}

// answer answers a request: a verb, and after a blank its argument.
//
//	open BASE    begins a session with the output of session.Encode
//	do STEP      does a step
//	undo         undoes the last step
//	export       returns the steps for the command line
//	map          returns the document and the arrays of the map by leaves, which few people look at
//	prepare      makes the next answer faster, and answers nothing
func (s *server) answer(request []byte) [][]byte {
	parts, err := s.parts(request)
	if err != nil {
		data, _ := json.Marshal(&reply{Error: err.Error()}) // reply has strings only
		return [][]byte{text.PrintableJSON(data)}
	}
	return parts
}

func (s *server) parts(request []byte) (parts [][]byte, err error) {
	err = par.Catch(func() error {
		parts, err = s.handle(context.Background(), request)
		return err
	})
	return parts, err
}

// handle answers a request. It takes over the new session only with the
// whole answer: else the page would show another state than the session has.
func (s *server) handle(ctx context.Context, request []byte) ([][]byte, error) {
	verb, rest, _ := bytes.Cut(request, []byte(" "))
	var r reply
	var err error
	var next *session.Session
	if s.session != nil {
		next = s.session.Clone()
	}
	switch {
	case string(verb) == "open":
		next, err = session.Decode(ctx, rest)
	case next == nil:
		err = fmt.Errorf("nothing is open")
	case string(verb) == "do":
		var step session.Step
		if step, err = session.ParseStep(string(rest)); err == nil {
			r.Answer, err = next.Do(ctx, step)
		}
	case string(verb) == "undo":
		next.Undo()
	case string(verb) == "export":
		r.Export, err = next.Export()
	case string(verb) == "map":
		in, err := shown(ctx, s.session)
		if err != nil {
			return nil, err
		}
		text, data, err := page.Map(ctx, in)
		return [][]byte{[]byte("{}"), text, data}, err
	case string(verb) == "prepare":
		next.Prepare()
		return nil, nil
	default:
		err = fmt.Errorf("%q: want open, do, undo, export, map or prepare", verb)
	}
	if err != nil {
		return nil, err
	}
	r.Steps, r.Drained = next.Steps(), next.Drained()
	head, err := json.Marshal(&r)
	head = text.PrintableJSON(head)
	if err != nil || r.Export != nil || r.Answer != nil && r.Answer.Refused != "" {
		return [][]byte{head}, err
	}
	if string(verb) == "open" { // the page shows these tables
		s.session = next
		return [][]byte{head}, nil
	}
	in, err := shown(ctx, next)
	if err != nil {
		return nil, err
	}
	text, data, err := page.Update(ctx, in)
	if err != nil {
		return nil, err
	}
	s.session = next
	return [][]byte{head, text, data}, nil
}

// shown returns the page's input for the tables in force.
func shown(ctx context.Context, s *session.Session) (*page.Input, error) {
	now := s.Result()
	loads, err := s.Loads(ctx)
	return &page.Input{Routes: loads, State: &state.State{Fabric: now.Routing.Fabric, Tables: now.Routing.Tables}, Result: now.Verify, Rules: verify.Rules}, err
}
