// Command ibweave-opensm is OpenSM's plugin libibweave-opensm.so: the C
// boundary of package cmd/ibweave-opensm/plugin.
//
//	go build -tags opensm -buildmode=c-shared -o libibweave-opensm.so ./cmd/ibweave-opensm
//
// It needs OpenSM's headers, libopensm-dev on Debian, of the version of the
// OpenSM that loads it. Without the build tag this is a program that prints
// that command, so that everything builds on machines without the headers.
package main
