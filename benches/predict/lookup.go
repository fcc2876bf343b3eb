// Looks keys up in a map at random. Built static, without C.
package main

import "fmt"

func main() {
	const count = 8_000_000
	table := make(map[uint64]uint64, count)
	for key := uint64(0); key < count; key++ {
		table[key*2654435761] = key
	}
	state, sum := uint64(88172645463325252), uint64(0)
	for lookup := 0; lookup < 40_000_000; lookup++ {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		sum += table[state%count*2654435761]
	}
	fmt.Println(sum)
}
