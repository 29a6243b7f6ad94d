#version 330 core
// One triangle that covers the whole target.
out vec2 position01;

void main() {
  vec2 corner = vec2(gl_VertexID == 1 ? 2.0 : 0.0, gl_VertexID == 2 ? 2.0 : 0.0);
  position01 = corner;
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
