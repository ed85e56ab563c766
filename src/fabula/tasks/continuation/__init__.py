"""Story continuation (Roemmele, Gordon and Swanson 2017): passages, generators, and measures."""
