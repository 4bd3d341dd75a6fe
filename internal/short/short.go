// Package short lets tests run fewer cases under go test -short. Every test keeps
// some. Only tests import it. It makes no promise to other modules.
package short

import "testing"

// Of returns all, or few under -short.
func Of[T any](all, few T) T {
	if testing.Short() {
		return few
	}
	return all
}

// Part returns the cases of a table: all, or the first few under -short.
func Part[T any](few int, cases []T) []T {
	return cases[:Of(len(cases), min(few, len(cases)))]
}

// Keys returns the keys of a table of cases: all, or those of few under -short.
func Keys[K comparable, T any](table map[K]T, few ...K) (keys []K) {
	if testing.Short() {
		return few
	}
	for key := range table {
		keys = append(keys, key)
	}
	return keys
}
